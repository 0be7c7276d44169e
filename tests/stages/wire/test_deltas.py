"""Deltas: the pieces of a reply add up to it, and to a fault where they do not."""

from stages.effect import Fault
from stages.wire.deltas import Ended, TextDelta, gather_reply, payloads


def test_a_stream_that_ends_too_early_is_no_reply() -> None:
    empty, torn = gather_reply(()), gather_reply((TextDelta(text="Hel"),))
    assert isinstance(empty, Fault)
    assert isinstance(torn, Fault)
    assert (empty.kind, torn.kind) == ("malformed", "interrupted")
    slow = Fault(kind="timeout", detail="slow")
    assert gather_reply((TextDelta(text="Hel"), slow, Ended())) == slow


def test_events_are_taken_line_by_line() -> None:
    lines = (b'data: {"a":1}', b"", b"event: x", b": ping", b'data:{"a":2}', b'error: {"code":1}', b"data:")
    assert payloads(lines) == (b'{"a":1}', b'{"a":2}', b'{"error": {"code":1}}')
