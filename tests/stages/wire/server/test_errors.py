"""What a client is told of a fault behind the server that it asked."""

import pytest

from stages.effect import Fault
from stages.wire.server.errors import error_of, too_long


@pytest.mark.parametrize(
    ("fault", "status"),
    [
        (Fault(kind="status", detail="", status=429), 429),
        (Fault(kind="reported", detail=""), 502),
    ],
)
def test_the_status(fault: Fault, status: int) -> None:
    assert error_of(fault).status == status


def test_what_the_backend_says_of_retries_is_passed_on() -> None:
    error = error_of(Fault(kind="status", detail="Slow down.", status=429, retry_after=2.5, retriable=True))
    assert (error.message, error.retry_after, error.retriable) == ("Slow down.", 2.5, True)


def test_a_prompt_that_is_too_long_is_told_in_the_words_by_which_clients_compact() -> None:
    error = too_long(300, 200)
    assert error.message == "prompt is too long: 300 tokens > 200 maximum"
    assert (error.code, error.status, error.retriable) == ("context_length_exceeded", 400, False)
