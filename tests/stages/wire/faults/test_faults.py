"""Faults in an answer: what a server reports is told in its words, cut to size."""

import pytest
from msgspec import Raw

from stages.wire.faults import BODY_KEPT, cut_body, reported_fault, too_many_calls_fault


@pytest.mark.parametrize(
    ("error", "status", "says"),
    [
        ('{"message":"Slow down.","type":"rate_limit_error"}', 429, "rate_limit_error: Slow down."),
        ('{"message":"Gone.","code":404}', 404, "Gone."),
        ('{"message":"Odd.","code":"no_number"}', None, "Odd."),
        ('{"message":"Odd.","code":200}', None, "Odd."),
        ('"out of memory"', None, "out of memory"),
        ("{}", None, "no reason"),
        ("[1,2]", None, "[1,2]"),
        ("null", None, "null"),
    ],
)
def test_a_reported_error(error: str, status: int | None, says: str) -> None:
    fault = reported_fault(Raw(error.encode()))
    assert (fault.kind, fault.status, fault.detail) == ("reported", status, f"the server reports an error: {says}")


def test_of_a_long_error_only_the_beginning_is_kept() -> None:
    fault = reported_fault(Raw(b'{"message":"' + b"x" * 100_000 + b'"}'))
    assert len(fault.detail) < 400
    assert len(fault.body) == BODY_KEPT == len(cut_body(b"y" * 100_000))


def test_a_reply_of_countless_calls_is_too_large() -> None:
    assert too_many_calls_fault().kind == "too_large"
