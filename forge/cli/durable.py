"""Durable runs on the command line: the verbs of `forge runs`."""

import argparse
import asyncio
import os
import sys
from collections.abc import Awaitable, Callable
from typing import TypeVar

from returns.result import Failure
from rich.text import Text

from forge import durable
from forge.backends.servers.process import state_folder
from forge.cli.console import Console, LabelledText, print_json, printable, readable
from forge.cli.options import backend_for
from forge.cli.progress import downloading
from forge.cli.run import load_served, prompt_values
from forge.cli.signals import until_signal
from forge.durable import Run, Runs
from forge.durable.runs import workflow_of
from forge.errors import ForgeError, RunError, quantity
from forge.journal.replaying import ending_text
from stages.effect import Approved, Rejected, Settled

_T = TypeVar("_T")

_COLOURS = {"completed": "green", "waiting": "yellow", "failed": "red", "halted": "red"}

_SHORT = 12
"""Characters of a digest in a printed command, which must fit on a line to be copied."""

_IDLE = 0.5
"""Seconds between checks for remaining runs."""


def run_work(options: argparse.Namespace) -> int:
    """Perform runs until a signal arrives or, with --until-idle, until none is left."""
    served = [load_served(reference, "forge runs work") for reference in options.workflows]
    console = Console(stderr=True)

    async def working() -> int:
        with downloading(console) as progress:
            backend = backend_for(options, served, progress)
        async with durable.worker(
            served,
            database=database_of(options),
            backend=backend,
            concurrency=options.concurrency,
            per_minute=options.per_minute,
            slots=options.slots,
            answer_within=options.answer_within.total_seconds(),
        ) as runs:
            names = ", ".join(workflow_of(one).name for one in served)
            console.say(f"performing runs of {names} in {runs.where}; press Ctrl-C to stop")
            if not options.until_idle:
                await asyncio.Event().wait()
            cursor, waiting = "", 0  # wait until no run is queued or running; those that wait for a person do not count
            while True:
                page = await runs.list(cursor=cursor, most=500)
                if any(run.state in {"queued", "running"} for run in page.runs):
                    cursor, waiting = "", 0
                    await asyncio.sleep(_IDLE)
                    continue
                waiting += sum(run.state == "waiting" for run in page.runs)
                cursor = page.cursor
                if not cursor:
                    break
            if waiting:
                runs_wait = "1 run waits" if waiting == 1 else f"{waiting} runs wait"
                console.say(f"{runs_wait} for an answer; forge runs list shows which")
        return 0

    return asyncio.run(until_signal(working()))


def run_start(options: argparse.Namespace) -> int:
    """Start a run; print its id."""
    served, values = load_served(options.workflow), prompt_values(options.var)

    async def started(runs: Runs) -> str:
        return await runs.start(
            served,
            options.message,
            prompt_vars=values,
            id=options.id,
            conversation=options.conversation,
            priority=options.priority,
        )

    print(_asked(options, started, create=True))
    return 0


def run_list(options: argparse.Namespace) -> int:
    """Print a page of runs."""
    page = _asked(options, lambda runs: runs.list(cursor=options.cursor, most=options.last))
    if options.json:
        print_json(page)
        return 0
    console = Console()
    for run in page.runs:
        _show(console, run)
    if not page.runs:
        console.say("no durable runs; start one with forge runs start. For journals of forge run: forge runs")
    if page.cursor:
        console.say(f"More: forge runs list --cursor {page.cursor}", "dim")
    return 0


def run_show(options: argparse.Namespace) -> int:
    """Print one run with its open question."""
    run = _asked(options, lambda runs: runs.get(options.run))
    if options.json:
        print_json(run)
    else:
        _show(Console(), run)
    return 0


def run_result(options: argparse.Namespace) -> int:
    """Wait for the run to end and print its value; 3 if it waits for a person."""

    async def ended(runs: Runs) -> int:
        known = await runs.wait(options.run)
        if known.question is not None:
            _show(Console(stderr=True), known)
            return 3
        end = await runs.result(options.run)
        if isinstance(end, Failure):
            print(readable(str(end.failure())), file=sys.stderr)
            return 1
        value = end.unwrap().value
        if isinstance(value, str):
            print(readable(value) if sys.stdout.isatty() else value)
        else:
            print_json(value)
        return 0

    return _asked(options, ended)


def run_answer(options: argparse.Namespace) -> int:
    """Answer a run's open question."""
    if options.arguments is not None and not options.approve:
        raise ForgeError("--arguments can only be used with --approve")

    async def answered(runs: Runs) -> None:
        known = await runs.get(options.run)
        if known.question is None:
            raise ForgeError(f"the run {known.id} has no open question; it is {known.state}")
        digest, given = known.question.digest, options.arguments
        if options.digest and not digest.startswith(options.digest):
            digest = options.digest  # which is refused
        answer: Approved | Rejected | Settled = Approved(digest=digest, edited=given)
        if options.reject is not None:
            answer = Rejected(digest=digest, reason=options.reject)
        elif options.happened is not None:
            answer = Settled(digest=digest, happened=True, result=options.happened)
        elif options.did_not_happen:
            answer = Settled(digest=digest, happened=False)
        await runs.answer(options.run, answer)

    _asked(options, answered)
    return 0


def run_cancel(options: argparse.Namespace) -> int:
    """Cancel a run; say so if it has ended already."""

    async def cancelled(runs: Runs) -> Run:
        known = await runs.get(options.run)
        await runs.cancel(options.run)
        return known

    known = _asked(options, cancelled)
    if known.over:
        Console(stderr=True).say(f"the run {known.id} has already ended, and stays as it is:")
        _show(Console(stderr=True), known)
    else:
        print(f"cancelled {known.id}")
    return 0


def run_upgrade(options: argparse.Namespace) -> int:
    """Resume runs of another version."""

    async def upgraded(runs: Runs) -> int:
        chosen = [*options.runs] or [run.id async for run in runs.of_other_versions()]
        for run in chosen:
            await runs.upgrade(run)
        return len(chosen)

    print(f"upgraded {quantity(_asked(options, upgraded), 'run')}")
    return 0


def run_events(options: argparse.Namespace) -> int:
    """Print a run's events as JSON lines until it ends."""
    workflow = workflow_of(load_served(options.workflow))

    async def told(runs: Runs) -> int:
        async for one in runs.events(options.run, workflow, after=options.after):
            print_json(one)
        return 0

    return asyncio.run(until_signal(_with(options, told)))


def _plainly(do: Callable[[Runs, argparse.Namespace], Awaitable[object]]) -> Callable[[argparse.Namespace], int]:
    """A verb without output."""

    def run(options: argparse.Namespace) -> int:
        _asked(options, lambda runs: do(runs, options))
        return 0

    return run


run_retry = _plainly(lambda runs, options: runs.retry(options.run))
run_export = _plainly(lambda runs, options: runs.export(options.run, options.file))
run_delete = _plainly(lambda runs, options: runs.delete(options.run))


def run_prune(options: argparse.Namespace) -> int:
    """Delete runs that ended long ago."""
    print(f"deleted {quantity(_asked(options, lambda runs: runs.prune(options.older)), 'run')}")
    return 0


def _asked(options: argparse.Namespace, ask: Callable[[Runs], Awaitable[_T]], *, create: bool = False) -> _T:
    return asyncio.run(_with(options, ask, create=create))


async def _with(options: argparse.Namespace, ask: Callable[[Runs], Awaitable[_T]], *, create: bool = False) -> _T:
    async with durable.client(database_of(options), create=create) as runs:
        try:
            return await ask(runs)
        except RunError as error:
            if error.kind != "unknown":
                raise
            raise ForgeError(f"{error} in {runs.where}; `forge runs list` shows those that it has") from None


def database_of(options: argparse.Namespace) -> str:
    """The database of the runs."""
    return options.database or os.environ.get("FORGE_DATABASE") or str(state_folder() / "runs.db")


def _show(console: Console, run: Run) -> None:
    console.say(Text.assemble((run.id, "bold"), (f"   {printable(run.workflow)}", "dim")))
    said = printable(run.problem) or f"started {run.begun}, last updated {run.updated}"
    console.show(LabelledText(run.state, said, label_style=_COLOURS.get(run.state, "")))
    if run.message:
        console.show(LabelledText("message", printable(run.message)))
    if run.outcome is not None:
        console.show(LabelledText("done", printable(ending_text(run.outcome))))
    for call in run.in_doubt:
        why = f": {call.why}" if call.why else ""
        sentence = f"{call.name} {call.arguments} was started and may have taken effect{why}"
        console.show(LabelledText("unknown", printable(sentence)))
    if run.retriable:
        console.show(LabelledText("retry", f"forge runs retry {run.id}"))
    if (asks := run.question) is None:
        return
    question, unsure = f"Allow {asks.call.name} {asks.call.arguments}?", asks.in_doubt
    if unsure is not None:
        why = f" ({unsure.why})" if unsure.why else ""
        sentence = f"{unsure.name} {unsure.arguments} was started, and its outcome is unknown{why}"
        console.show(LabelledText("unknown", printable(sentence)))
        again = asks.call.arguments == unsure.arguments
        question = f"did it happen? If not, {'it' if again else f'{asks.call.name} {asks.call.arguments}'} runs now"
    console.show(LabelledText("asks", printable(question)))
    console.show(LabelledText("digest", asks.digest))
    ways = ("--happened [RESULT]", "--did-not-happen") if unsure is not None else ("--approve", "--reject REASON")
    for way in ways:
        command = f"forge runs answer {run.id} --digest {asks.digest[:_SHORT]} {way}"
        console.show(LabelledText("answer", command))
