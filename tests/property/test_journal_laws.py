"""Journals: what is written is what is read, whatever happened; what is no journal is refused, whatever is in it."""

import asyncio
import json
from contextlib import suppress
from pathlib import Path
from typing import assert_never, get_args

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec import UNSET
from msgspec.structs import replace

from forge import Workflow, run_sync, states
from forge.errors import ForgeError
from forge.interpreters.recorded import Header, read_journal
from forge.interpreters.scripted import Line, Scripted, call
from forge.interpreters.write_ahead import recording
from forge.setup import Setup
from forge.testing import states as any_states
from stages.effect import (
    Approved,
    Ask,
    CallResult,
    Effect,
    Execute,
    Outcome,
    Rejected,
    Replied,
    Results,
    Send,
    Undelivered,
)
from stages.rescue.template import Markers
from stages.state import State
from stages.wire.sampling import Sampling
from stages.wire.wires import Dialect
from tests.flows import Desk

quick = settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])


setups = st.builds(
    Setup,
    mode=st.sampled_from(["native", "prompted", "constrained"]),
    model=st.text(max_size=5),
    context_tokens=st.integers(0, 100_000),
    sampling=st.builds(Sampling, temperature=st.just(UNSET) | st.floats(0, 2), seed=st.just(UNSET) | st.integers(0, 9)),
    dialect=st.builds(Dialect, wire=st.sampled_from(["openai", "ollama", "anthropic"]), body=st.just({"a": [1]})),
    form=st.sampled_from(["json", "xml"]),
    alternating=st.booleans(),
    markers=st.none() | st.builds(Markers, opening=st.text(), between=st.none() | st.text()),
)
EFFECTS = st.one_of(*(st.from_type(kind) for kind in get_args(Effect)))
RESULTS = st.one_of(*(st.from_type(kind) for kind in get_args(CallResult)))


@st.composite
def exchanges(draw: st.DrawFn) -> tuple[Effect, Outcome]:
    """An effect of any kind, and an outcome that answers it."""
    effect = draw(EFFECTS)
    match effect:
        case Send():
            return effect, draw(st.from_type(Replied) | st.from_type(Undelivered))
        case Ask(digest=digest):
            answer = draw(st.from_type(Approved) | st.from_type(Rejected))
            return effect, replace(answer, digest=digest)
        case Execute(calls=calls):
            results = tuple(replace(draw(RESULTS), call_id=call.id) for call in calls)
            return effect, Results(results=results)
        case _:
            assert_never(effect)


@quick
@given(state=any_states(), setup=setups, script=st.lists(exchanges(), max_size=6))
def test_what_is_written_is_read(
    tmp_path: Path, state: State, setup: Setup, script: list[tuple[Effect, Outcome]]
) -> None:
    path = tmp_path / "run.jsonl"
    path.unlink(missing_ok=True)
    header = Header(workflow="w", state=state, setup=setup)
    left = iter(script)

    async def answer(effect: Effect) -> Outcome:
        return next(left)[1]

    async def go() -> None:
        with recording(answer, path, header) as perform:
            for effect, outcome in script:
                assert await perform(effect) == outcome

    asyncio.run(go())
    journal = read_journal(path)
    assert replace(journal.header, forge="", started="") == header
    assert [(entry.effect, entry.outcome) for entry in journal.entries] == script
    assert journal.pending is None
    assert journal.size == path.stat().st_size


@pytest.fixture(scope="module")
def lines(tmp_path_factory: pytest.TempPathFactory) -> list[object]:
    path = tmp_path_factory.mktemp("journal") / "run.jsonl"
    script: list[Line] = ["Hm.", call("look", what="a"), call("write", what="a", text="t"), call("finish", result="ok")]
    run_sync(Desk().workflow, "Go.", backend=Scripted(script), journal=str(path))
    return [json.loads(line) for line in path.read_bytes().splitlines()]


@pytest.fixture(scope="module")
def workflow() -> Workflow:
    return Desk().workflow


def places(value: object, path: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    match value:
        case dict():
            return [path, *(p for name, item in value.items() for p in places(item, (*path, name)))]
        case list():
            return [path, *(p for index, item in enumerate(value) for p in places(item, (*path, index)))]
        case _:
            return [path]


anything: st.SearchStrategy[object] = st.sampled_from(
    [None, -1, 0, 10**30, 1.5, True, "", "x", "call_000000001", "look", [], {}, [[]], {"type": "execute"}]
)


@settings(quick, max_examples=150)
@given(data=st.data())
def test_a_journal_that_was_tampered_with_is_refused_or_read_never_a_crash(
    tmp_path: Path, lines: list[object], workflow: Workflow, data: st.DataObject
) -> None:
    content = json.loads(json.dumps(lines))
    for _ in range(data.draw(st.integers(1, 3))):
        place = data.draw(st.sampled_from([p for p in places(content)[1:] if p[:2] != (0, "state")]))
        holder = content
        try:
            for step in place[:-1]:
                holder = holder[step]
            holder[place[-1]] = data.draw(anything)
        except (TypeError, KeyError, IndexError):
            continue  # an earlier change took the place away
    path = tmp_path / "run.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in content))
    with suppress(ForgeError):
        assert [*states(path, workflow)]
