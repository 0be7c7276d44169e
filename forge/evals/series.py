"""Runs: each cell is played and judged, whatever its scenario's code does."""

import ast
import asyncio
import hashlib
import time
from collections.abc import Callable, Iterable, Iterator
from functools import cache, partial
from itertools import chain
from pathlib import Path
from types import FunctionType
from typing import TypeVar

import msgspec
from msgspec import Struct

from forge.connection import Connection
from forge.errors import DefinitionError, ForgeError, checked_options
from forge.evals.configurations import ABLATIONS, Cell, configured_sampling, configured_workflow
from forge.evals.player import Player, PlayerMissing, RunEnd, Task
from forge.evals.players import FORGE
from forge.evals.record import RunRecord, metered
from forge.evals.row import Configuration, Row
from forge.evals.scenario import Judgement, Scenario, Trajectory, World, judge
from forge.interpreters.scripted import Line, Scripted
from forge.interpreters.threads import in_thread, unheard
from forge.runtime.reaching import with_sampling
from stages.options import did_you_mean
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


def scenario_digest(scenario: Scenario) -> str:
    """A hash of what makes and judges the scenario's worlds, to detect changes: context and code; empty without source.

    No world is made for it: the texts of one may differ from run to run, as by the name of a temporary folder. Forge's
    code does not count, because two versions of forge must be comparable.
    """
    code = tuple(_code(scenario.world, set()))
    if not code or () in code:
        return ""
    return hashlib.blake2b(msgspec.json.encode((scenario.context_tokens, code)), digest_size=8).hexdigest()


def _code(given: object, known: set[int]) -> Iterator[tuple[str, ...]]:
    """The code of a function, and of what it was given beforehand by `partial` or a closure; plain values as such."""
    match given:
        case partial():
            for value in (given.func, *given.args, *chain(*given.keywords.items())):
                yield from _code(value, known)
        case FunctionType() if id(given) not in known:  # a function may be in its own closure
            known.add(id(given))
            yield _file_code(given)
            for cell in given.__closure__ or ():
                yield from _code(cell.cell_contents, known)
        case str() | int() | float() | None:
            yield (repr(given),)


@cache  # as of the first call, because a file may be edited while the series runs
def _file_code(function: FunctionType) -> tuple[str, ...]:
    """The top-level statement with the function, and all that it uses of its file, without comments and layout."""
    code = function.__code__
    try:
        statements = ast.parse(Path(code.co_filename).read_bytes()).body
    except (OSError, SyntaxError, ValueError):
        return ()
    reached = [one for one in statements if code.co_firstlineno <= (one.end_lineno or 0)][:1]
    for first in reached:
        if isinstance(first, ast.FunctionDef):  # decorators only list the scenario
            first.decorator_list = []
    made = {one: _made(one) for one in statements}
    for statement in reached:  # which grows
        used = {node.id for node in ast.walk(statement) if isinstance(node, ast.Name)}
        reached += [one for one in statements if one not in reached and made[one] & used]
    return tuple(sorted(map(ast.unparse, reached)))


def _made(node: ast.AST) -> set[str]:
    """The names that a statement defines in its file."""
    match node:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            return {name}
        case ast.Name(id=name, ctx=ast.Store()):
            return {name}
        case _:
            return set[str]().union(*map(_made, ast.iter_child_nodes(node)))


# A single run: one cell, played, judged, and recorded as a row in any case.


class ServerLost(ForgeError):  # noqa: N818 - what happened is in the name
    """The model's server cannot be used any more, so runs would say nothing about the model."""


class SeriesOptions(Struct, frozen=True, kw_only=True):
    """Options shared by all runs of a series. `seconds` is a maximum; `journals` is their folder (None: none)."""

    seconds: float = 300.0
    journals: Path | None = None
    commit: str = ""


async def row_of(
    cell: Cell, player: Player, connection: Connection, options: SeriesOptions, one_by_one: asyncio.Lock
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
        task = task_of(cell, world, connection, record, journal)
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
    return _row(cell, options, record, ended, judged)


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


def _row(cell: Cell, options: SeriesOptions, record: RunRecord, ended: RunEnd, judged: Judgement) -> Row:
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
        scenario_digest=scenario_digest(cell.scenario),
    )


# Playing a scenario without a server, on scripted replies, for unit tests.


class Played(Struct, frozen=True, kw_only=True):
    """A finished run: the verdict, the trajectory, and how it ended by the player's account."""

    judged: Judgement
    trajectory: Trajectory
    ended: RunEnd


@checked_options
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
    if ablation and ablation not in ABLATIONS:
        listed = ", ".join(ABLATIONS)
        raise DefinitionError(
            (f"there is no ablation {ablation!r}; there are: {listed}.{did_you_mean(ablation, ABLATIONS)}",)
        )
    known = Configuration(model="scripted", backend="scripted", player=player.name, mode=mode, ablation=ablation)
    cell, record, world = Cell(configuration=known, scenario=scenario, seed=seed), RunRecord(), scenario.world(seed)
    if not isinstance(world, World):
        raise DefinitionError(
            (f"the scenario {scenario.name!r}: its world returned {world!r:.200}, which is not a World",)
        )
    backend = Scripted(replies, mode=mode, context_tokens=scenario.context_tokens)

    async def run() -> RunEnd:
        async with backend.connect() as connection:
            return await player.play(task_of(cell, world, connection, record))

    ended = asyncio.run(run())
    trajectory = record.trajectory(len(world.messages))
    return Played(judged=judge(world, trajectory), trajectory=trajectory, ended=ended)
