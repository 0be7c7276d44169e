"""Journals: what is written is what is read, whatever happened; what is no journal is refused, whatever is in it."""

import asyncio
import json
from contextlib import suppress
from copy import deepcopy
from pathlib import Path
from typing import assert_never, get_args

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec import UNSET, Raw
from msgspec.structs import replace

from forge import Workflow, run_sync
from forge.connection import Setup
from forge.errors import ForgeError, JournalError
from forge.interpreters.scripted import Line, Scripted, call
from forge.journal import states
from forge.journal.file import continuing, recording
from forge.journal.records import Header, Journal, read_journal
from forge.testing import states as any_states
from stages.effect import (
    Approved,
    Ask,
    CallResult,
    Effect,
    Execute,
    Fault,
    Outcome,
    Rejected,
    Replied,
    Request,
    Results,
    Send,
    Undelivered,
)
from stages.rescue.found import Markers
from stages.state import State
from stages.wire.sampling import Sampling
from stages.wire.wires import Dialect
from tests.flows import Desk
from tests.journals import journal_of
from tests.property.test_server_wire_laws import members

quick = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


setups = st.builds(
    Setup,
    mode=st.sampled_from(["native", "prompted", "constrained"]),
    model=st.text(max_size=5),
    context_tokens=st.integers(0, 100_000),
    sampling=st.builds(Sampling, temperature=st.just(UNSET) | st.floats(0, 2), seed=st.just(UNSET) | st.integers(0, 9)),
    dialect=st.builds(Dialect, wire=st.sampled_from(["openai", "ollama", "anthropic"]), body=st.just({"a": [1]})),
    alternating=st.booleans(),
    markers=st.none() | st.builds(Markers, opening=st.text(), between=st.none() | st.text()),
    tokens_per_character=st.none() | st.floats(0, 1),
    because=st.text(max_size=5),
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
    assert [journal.effect(number) for number in range(len(script))] == [effect for effect, _ in script]
    assert [entry.outcome for entry in journal.entries] == [outcome for _, outcome in script]
    assert journal.pending is None
    assert journal.size == path.stat().st_size


async def test_the_same_request_after_one_that_was_undelivered_is_another_effect(tmp_path: Path) -> None:
    """A run may ask the same twice; only one that is gone on with asks again for what is in its journal."""
    path = tmp_path / "run.jsonl"
    send = Send(request=Request(messages=(Raw(b'{"role":"user"}'),)), turn=1)
    undelivered = Undelivered(fault=Fault(kind="timeout", detail="too slow"))

    async def nobody(effect: Effect) -> Outcome:
        return undelivered

    with recording(nobody, path, Header(workflow="w", state=State(history=()))) as perform:
        await perform(send)
        await perform(send)
    before = read_journal(path)
    unanswered = replace(before, entries=before.entries[:-1], pending=before.entries[-1].effect)
    with continuing(nobody, path, unanswered) as perform:
        await perform(send)
    journal = read_journal(path)
    assert [journal.effect(number) for number in range(2)] == [send, send]
    assert [entry.outcome for entry in journal.entries] == [undelivered, undelivered]


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("journal") / "run.jsonl"
    script: list[Line] = ["Hm.", call("look", what="a"), call("write", what="a", text="t"), call("finish", result="ok")]
    run_sync(Desk().workflow, "Go.", backend=Scripted(script), journal=str(path))
    return path.read_bytes()


def read(tmp_path: Path, content: bytes) -> Journal:
    path = tmp_path / "run.jsonl"
    path.write_bytes(content)
    return read_journal(path)


def test_no_flipped_bit_is_read(tmp_path: Path, written: bytes) -> None:
    bits = len(written) * 8
    for bit in (*range(0, bits, 61), bits - 1):  # every bit of a byte in turn, several in each line; the last one
        flipped = bytearray(written)
        flipped[bit // 8] ^= 1 << bit % 8
        with pytest.raises(JournalError):
            read(tmp_path, bytes(flipped))


@quick
@given(data=st.data())
def test_no_line_that_was_removed_repeated_or_moved_is_read(
    tmp_path: Path, written: bytes, data: st.DataObject
) -> None:
    lines = written.splitlines(keepends=True)
    order = data.draw(st.lists(st.sampled_from(range(len(lines))), min_size=1))
    if order == [*range(len(order))]:
        assert len(read(tmp_path, b"".join(lines[: len(order)])).entries) == (len(order) - 1) // 2
        return
    with pytest.raises(JournalError):
        read(tmp_path, b"".join(lines[n] for n in order))


def test_a_journal_that_was_cut_off_anywhere_is_the_run_so_far_or_says_that_there_was_none(
    tmp_path: Path, written: bytes
) -> None:
    whole = read(tmp_path, written)
    header = written.index(b"\n") + 1
    ends = [place for place in range(header, len(written)) if written[place : place + 1] == b"\n"]
    near = [end + beside for end in ends[:-1] for beside in (0, 1, 2)]
    for end in [0, 1, 5, 11, header - 1, header, *near, *range(header, len(written), 37)]:
        if end < header:
            with pytest.raises(JournalError, match="nothing was done"):
                read(tmp_path, written[:end])
        else:
            so_far = read(tmp_path, written[:end])
            assert whole.asked()[: len(so_far.asked())] == so_far.asked()
            assert so_far.size == written[:end].rindex(b"\n") + 1


@pytest.fixture(scope="module")
def lines(written: bytes) -> list[dict[str, object]]:
    lines = [json.loads(line) for line in written.splitlines()]
    return [{name: value for name, value in line.items() if name != "check"} for line in lines]


@pytest.fixture(scope="module")
def workflow() -> Workflow:
    return Desk().workflow


anything: st.SearchStrategy[object] = st.sampled_from(
    [None, -1, 0, 10**30, 1.5, True, "", "x", "call_000000001", "look", [], {}, [[]], {"type": "execute"}]
)


@settings(quick)
@given(data=st.data())
def test_a_journal_that_was_tampered_with_is_refused_or_read_never_a_crash(
    tmp_path: Path, lines: list[dict[str, object]], workflow: Workflow, data: st.DataObject
) -> None:
    content = json.loads(json.dumps(lines))
    state = content[0].pop("state")
    for _ in range(data.draw(st.integers(1, 3))):
        holder, key = data.draw(st.sampled_from(members(content)))
        holder[key] = deepcopy(data.draw(anything))
    if isinstance(content[0], dict):
        content[0]["state"] = state
    path = tmp_path / "run.jsonl"
    path.write_bytes(journal_of(*(json.dumps(line).encode() for line in content)))
    with suppress(ForgeError):
        assert [*states(path, workflow)]
