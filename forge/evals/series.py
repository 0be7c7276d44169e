"""Runs: each cell is played and judged, whatever its scenario's code does."""

import ast
import asyncio
import hashlib
import inspect
import time
from collections.abc import Callable, Iterable
from functools import cache, partial
from pathlib import Path
from textwrap import dedent
from types import FunctionType
from typing import TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from forge.connection import Connection
from forge.errors import ForgeError
from forge.evals.configurations import Cell, configured_sampling, configured_workflow
from forge.evals.player import Player, PlayerMissing, RunEnd, Task
from forge.evals.players import FORGE
from forge.evals.record import RunRecord, metered
from forge.evals.row import Configuration, Row
from forge.evals.scenario import Judgement, Scenario, Trajectory, World, judge
from forge.interpreters.scripted import Line, Scripted
from forge.interpreters.threads import in_thread, unheard
from forge.runtime.reaching import with_sampling
from forge.tools.definition import Tool, tool
from stages.wire.target import Mode

_T = TypeVar("_T")

# A scenario's own code, run in a thread: if it hangs, the series continues without it.


class Hung(Exception):  # noqa: N818 - what happened is in the name
    """A timeout. The thread continues, because threads cannot be stopped."""


async def _in_time(what: str, function: Callable[[], _T], seconds: float) -> _T:
    """What the function returns. Hung on a timeout, or the function's own exception."""
    made: list[_T] = []
    try:
        async with asyncio.timeout(seconds) as limit:
            await in_thread(lambda: made.append(function()), unheard)
    except TimeoutError:
        if not limit.expired():
            raise
        raise Hung(f"{what} took longer than {seconds:g} s") from None
    return made[0]


async def made_world(cell: Cell, seconds: float, one_by_one: asyncio.Lock) -> World:
    """The scenario's world for the seed. Hung on a timeout, the function's own exception, or TypeError.

    Worlds are made one at a time: their data may come from the global `random`, and must only depend on the seed.
    """
    async with one_by_one:
        made: object = await _in_time("its world function", partial(cell.scenario.world, cell.seed), seconds)
    if not isinstance(made, World):
        raise TypeError(f"its world function returned {type(made).__name__}, not World")
    return made


async def judgement_of(world: World, trajectory: Trajectory, seconds: float) -> Judgement:
    """The verdict of the world's checks; `unjudged` after a timeout."""
    try:
        return await _in_time("a check", partial(judge, world, trajectory), seconds)
    except Hung as hung:
        return Judgement("unjudged", str(hung))


def task_digest(scenario: Scenario, world: World) -> str:
    """A hash of what a model is given and how it is judged, to detect changes; empty without source.

    This is the context, the world's messages, system prompt and tools, and the code that makes the world, where the
    checks are. Of the tools' parameters only the names: their schemas are forge's, and two versions of forge must be
    comparable.
    """
    if not (code := world_code(scenario.world)):
        return ""
    specs = [(made if isinstance(made, Tool) else tool(made)).spec for made in world.workflow.tools]
    tools = [(spec.name, spec.description, list(spec.properties)) for spec in specs]
    told = (code, scenario.context_tokens, world.messages, world.workflow.system_prompt, tools)
    return hashlib.blake2b(msgspec.json.encode(told), digest_size=8).hexdigest()


def world_code(world: Callable[[int], World]) -> tuple[str, ...]:
    """The code that makes the world, with bound arguments, as of the first call; empty without source."""
    function: object = world
    bound: list[object] = []
    while isinstance(function, partial):
        given = (*function.args, *function.keywords.values())
        bound += [value for value in given if isinstance(value, str | int | float | bool | None)]
        function = function.func
    code = _file_code(function) if isinstance(function, FunctionType) else ()
    return (str(bound), *code) if code else ()


@cache
def _file_code(function: FunctionType) -> tuple[str, ...]:
    """The code of the function and of what it uses of its file's functions and classes; empty without source.

    Without comments, layout and decorators.
    """
    waiting: list[FunctionType | type] = [function]
    found: dict[object, str] = {}
    while waiting:
        one = waiting.pop()
        if one in found or one.__module__ != function.__module__:
            continue
        try:
            found[one] = code = dedent(inspect.getsource(one))
            tree = ast.parse(code)
        except (OSError, TypeError):
            return ()
        except SyntaxError:  # the lines of a lambda may be part of a statement
            continue
        for statement in tree.body:
            if isinstance(statement, ast.FunctionDef):
                statement.decorator_list = []
        found[one] = ast.unparse(tree)
        used = (function.__globals__.get(node.id) for node in ast.walk(tree) if isinstance(node, ast.Name))
        waiting += [value for value in used if isinstance(value, FunctionType | type)]
    return tuple(sorted(found.values()))


# A single run: one cell, played, judged, and recorded as a row in any case.


class ServerLost(ForgeError):  # noqa: N818 - what happened is in the name
    """The model's server cannot be used any more, so runs would say nothing about the model."""


class RunOptions(Struct, frozen=True, kw_only=True):
    """Options shared by all runs of a series. `seconds` is a maximum; `journals` is their folder (None: none)."""

    seconds: float = 300.0
    journals: Path | None = None
    commit: str = ""


async def row_of(
    cell: Cell, player: Player, connection: Connection, options: RunOptions, one_by_one: asyncio.Lock
) -> Row:
    """The row of a run. ServerLost if its model cannot be asked, PlayerMissing if its player cannot play at all.

    All other failures are recorded in the row. `one_by_one` is the series' lock for making worlds.
    """
    record = RunRecord(started=time.time())
    journal = options.journals / cell.journal if options.journals else None
    if journal:
        journal.parent.mkdir(parents=True, exist_ok=True)
        for left in journal.parent.glob(f"{journal.name}.*"):  # left by an interrupted run
            left.unlink()
    try:
        world = await made_world(cell, options.seconds, one_by_one)
        task, digest = task_of(cell, world, connection, record, journal), task_digest(cell.scenario, world)
    except Exception as error:  # noqa: BLE001 - a user's scenario: the row says so, and the other runs go on
        why = str(error) if isinstance(error, Hung) else f"the scenario raised {type(error).__name__}: {error}"
        return _row(cell, options, record, _crashed(error), Judgement("unjudged", why))
    clock = time.monotonic()
    ended = await _played(player, task, options.seconds)
    record.seconds = time.monotonic() - clock
    # Other runs would fail too: the server is gone, refuses the key, or (404) lacks the model or the path.
    if (fault := record.fault) and (fault.kind in {"unreachable", "tls"} or fault.status in {401, 403, 404}):
        raise ServerLost(f"the model's server cannot be used: {fault.detail}")
    judged = await judgement_of(world, record.trajectory(len(world.messages)), options.seconds)
    if judged.verdict == "unfinished" and ended.why:
        judged = Judgement("unfinished", ended.why)
    return replace(_row(cell, options, record, ended, judged), scenario_digest=digest)


def task_of(cell: Cell, world: World, connection: Connection, record: RunRecord, journal: Path | None = None) -> Task:
    """The task for the cell's player: the world's workflow in the cell's configuration, recorded."""
    workflow = record.recorded(configured_workflow(world.workflow, cell.configuration))
    sampled = with_sampling(connection, configured_sampling(cell.configuration))
    price, context = workflow.budget.price, cell.scenario.context_tokens
    return Task(
        workflow=workflow,
        messages=world.messages,
        connection=metered(sampled, record, seed=cell.seed, price=price, context_tokens=context),
        record=record,
        mode=cell.configuration.mode,
        journal=journal,
    )


async def _played(player: Player, task: Task, seconds: float) -> RunEnd:
    try:
        async with asyncio.timeout(seconds) as limit:
            said: object = await player.play(task)
            if not isinstance(said, RunEnd):  # a user's player may return anything
                return _crashed(TypeError(f"the player returned {type(said).__name__}, not RunEnd"))
            return said
    except TimeoutError as error:
        if not limit.expired():
            return _crashed(error)
        return RunEnd("Timeout", f"it took longer than {seconds:g} s")
    except PlayerMissing:
        raise
    except (Exception, SystemExit) as error:  # noqa: BLE001 - a crash of one run is a row like any other
        return _crashed(error)


def _crashed(error: BaseException) -> RunEnd:
    return RunEnd(type(error).__name__, f"{type(error).__name__}: {error}")


def _row(cell: Cell, options: RunOptions, record: RunRecord, ended: RunEnd, judged: Judgement) -> Row:
    written: list[str] = []  # paths relative to the results file
    if options.journals:
        path = options.journals / cell.journal
        found = sorted(path.parent.glob(f"{path.name}.*"), key=lambda file: (len(file.name), file.name))
        written = [file.relative_to(options.journals.parent).as_posix() for file in found]
    return Row(
        configuration=cell.configuration,
        scenario=cell.scenario.name,
        tags=tuple(sorted(cell.scenario.tags)),
        seed=cell.seed,
        verdict=judged.verdict,
        why=judged.why,
        end=ended.end,
        calls=record.asked,
        ideal_calls=cell.scenario.ideal_calls,
        context_tokens=cell.scenario.context_tokens,
        performed=len(record.calls),
        retries=record.retries,
        step_nudges=record.step_nudges,
        tool_errors=record.tool_errors,
        rescued=record.rescued,
        compactions=record.compactions,
        input_tokens=record.input_tokens,
        output_tokens=record.output_tokens,
        cached_tokens=record.cached_tokens,
        cost=record.cost or None,
        seconds=round(record.seconds, 3),
        started=round(record.started, 3),
        commit=options.commit,
        journals=tuple(written),
        unanswered=record.fault.kind if record.fault else "",
        digest=record.digest,
    )


# Playing a scenario without a server, on scripted replies, for unit tests.


class Played(Struct, frozen=True, kw_only=True):
    """A finished run: the verdict, the trajectory, and how it ended by the player's account."""

    judged: Judgement
    trajectory: Trajectory
    ended: RunEnd


def play(
    scenario: Scenario,
    replies: Iterable[Line],
    *,
    seed: int = 1,
    player: Player = FORGE,
    mode: Mode = "native",
    ablation: str = "",
) -> Played:
    """The run of the scenario with that seed, by a model with scripted replies.

    A reply is a text, or one with calls (`forge.interpreters.scripted.call`). ScriptError if the run needs more.
    """
    known = Configuration(model="scripted", backend="scripted", player=player.name, mode=mode, ablation=ablation)
    cell, record, world = Cell(configuration=known, scenario=scenario, seed=seed), RunRecord(), scenario.world(seed)
    backend = Scripted(replies, mode=mode, context_tokens=scenario.context_tokens)

    async def run() -> RunEnd:
        async with backend.connect() as connection:
            return await player.play(task_of(cell, world, connection, record))

    ended = asyncio.run(run())
    trajectory = record.trajectory(len(world.messages))
    return Played(judged=judge(world, trajectory), trajectory=trajectory, ended=ended)
