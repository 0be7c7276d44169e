"""Lines of a stream: the same however the network splits it."""

from stages.wire.deltas import Lines, payloads


def read(*chunks: bytes) -> tuple[bytes, ...]:
    lines, found = Lines(), list[bytes]()
    for chunk in chunks:
        lines, more = lines.advance(chunk)
        found += more
    return (*found, *lines.finish())


def test_a_line_that_never_ends_is_there_at_the_end_and_is_measured_before() -> None:
    lines, _ = Lines().advance(b"one\ntw")
    assert (lines.size, lines.finish()) == (2, (b"tw",))


def test_events_are_taken_line_by_line() -> None:
    lines = (b'data: {"a":1}', b"", b"event: x", b": ping", b'data:{"a":2}', b'error: {"code":1}', b"data:")
    assert payloads(lines) == (b'{"a":1}', b'{"a":2}', b'{"error": {"code":1}}')
