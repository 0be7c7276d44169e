"""Lines of a stream: the same however the network splits it."""

from stages.wire.deltas import payloads


def test_events_are_taken_line_by_line() -> None:
    lines = (b'data: {"a":1}', b"", b"event: x", b": ping", b'data:{"a":2}', b'error: {"code":1}', b"data:")
    assert payloads(lines) == (b'{"a":1}', b'{"a":2}', b'{"error": {"code":1}}')
