"""A journal takes work and memory by its size, not by its square: counted, for time says nothing on a busy machine."""

import asyncio
import json
import tracemalloc
from collections import deque
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from forge import Limits, Workflow, resume_journal, run_sync, tool
from forge.interpreters.scripted import Line, Scripted, call
from forge.journal import states
from forge.journal.ablation import ablate
from forge.journal.bisection import bisect
from forge.journal.records import read_journal
from stages.wire.target import Mode
from tests.counted import calls_of
from tests.flows import finish

SHORT, LONG = 15, 60


@tool(effect="read")
def look(page: int) -> str:
    """Look at a page."""
    return f"page {page}"


WORKFLOW = Workflow("long", tools=[look, finish], terminal_tool="finish", limits=Limits(max_iterations=LONG + 2))
MODES: list[Mode] = ["native", "prompted"]


@pytest.fixture(scope="module", params=MODES)
def journals(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A short one, and one of four times as many turns; each of a run that was cut off before its last reply."""
    folder = tmp_path_factory.mktemp("journals")
    return _journal(folder / "short", SHORT, request.param), _journal(folder / "long", LONG, request.param)


def _model(mode: Mode, *called: tuple[str, dict[str, object]]) -> Scripted:
    script: list[Line] = [
        call(name, **arguments) if mode == "native" else json.dumps({"tool": name, "args": arguments})
        for name, arguments in called
    ]
    return Scripted(script, mode=mode, context_tokens=1_000_000)


def _journal(path: Path, turns: int, mode: Mode) -> Path:
    looks: list[tuple[str, dict[str, object]]] = [("look", {"page": page}) for page in range(turns)]
    run_sync(WORKFLOW, "Go.", backend=_model(mode, *looks, ("finish", {})), journal=str(path)).unwrap()
    *lines, _answer, _begun, _done = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines))
    return path


def replayed(path: Path) -> None:
    deque(states(path, WORKFLOW), maxlen=1)


def resumed(path: Path) -> None:
    before = path.read_bytes()
    model = _model(read_journal(path).header.setup.mode, ("finish", {}))
    asyncio.run(resume_journal(WORKFLOW, path, backend=model)).unwrap()
    path.write_bytes(before)


def bisected(path: Path) -> None:
    assert bisect(path, WORKFLOW, WORKFLOW) is None


def ablated(path: Path) -> None:
    ablate(path, WORKFLOW)


@pytest.mark.parametrize("use", [read_journal, replayed, resumed, bisected, ablated])
def test_four_times_the_journal_is_four_times_the_work(
    journals: tuple[Path, Path], use: Callable[[Path], object]
) -> None:
    short, long = (_calls(partial(use, path)) for path in journals)
    assert long < 5 * short


def test_four_times_the_journal_is_four_times_the_memory(journals: tuple[Path, Path]) -> None:
    short, long = (_memory(partial(resumed, path)) for path in journals)
    assert long < 5 * short


def test_four_times_the_run_is_four_times_the_journal(journals: tuple[Path, Path]) -> None:
    short, long = (path.stat().st_size for path in journals)
    assert long < 4.5 * short


def _calls(use: Callable[[], object]) -> int:
    """How many functions it calls, Python's and C's."""
    use()  # what is prepared once is not counted
    return calls_of(use)


def _memory(use: Callable[[], object]) -> int:
    """Bytes that it has at most at the same time."""
    use()
    tracemalloc.start()
    try:
        use()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
