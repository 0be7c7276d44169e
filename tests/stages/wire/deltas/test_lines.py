"""Lines of a stream: the same however the network splits it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stages.wire.deltas import Lines, appended, payloads


def read(*chunks: bytes) -> tuple[bytes, ...]:
    lines, found = Lines(), list[bytes]()
    for chunk in chunks:
        lines, more = lines.advance(chunk)
        found += more
    return (*found, *lines.finish())


@pytest.mark.parametrize("end", [b"\n", b"\r", b"\r\n"])
def test_lines_end_in_each_of_the_three_ways(end: bytes) -> None:
    assert read(b"one" + end + end + b"two" + end) == (b"one", b"", b"two")


def test_a_line_that_never_ends_is_there_at_the_end_and_is_measured_before() -> None:
    lines, _ = Lines().advance(b"one\ntw")
    assert (lines.size, lines.finish()) == (2, (b"tw",))


@given(st.lists(st.sampled_from([b"a", b"bc", b"\n", b"\r", b"\r\n"]), max_size=12))
def test_chunks_make_no_difference(chunks: list[bytes]) -> None:
    assert read(*chunks) == read(b"".join(chunks))


@given(st.lists(st.binary(min_size=1, max_size=50), max_size=200))
def test_parts_stay_few(added: list[bytes]) -> None:
    parts: tuple[bytes, ...] = ()
    for more in added:
        parts = appended(parts, more)
    whole = b"".join(added)
    assert b"".join(parts) == whole
    assert len(parts) <= len(whole).bit_length()


def test_events_are_taken_line_by_line() -> None:
    lines = (b'data: {"a":1}', b"", b"event: x", b": ping", b'data:{"a":2}', b'error: {"code":1}', b"data:")
    assert payloads(lines) == (b'{"a":1}', b'{"a":2}', b'{"error": {"code":1}}')
