"""Faults in an answer: what a server reports is told in its words, cut to size."""

import pytest
from msgspec import Raw

from stages.wire.faults import BODY_KEPT, cut_body, reported_fault


@pytest.mark.parametrize(
    ("error", "status", "says"),
    [
        ('{"message":"Slow down.","type":"rate_limit_error"}', 429, "rate_limit_error: Slow down."),
        ('{"message":"Odd.","code":"no_number"}', None, "Odd."),
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
