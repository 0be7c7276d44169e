"""The bench of the proxy measures what it says: replies that fit their tools, and ratios to the limit."""

import pytest

from benchmarks.proxy.backend import CALL, CALL_EVENTS, TEXT, TEXT_EVENTS
from benchmarks.proxy.bodies import bodies
from tests.proxy.test_proxy import behind
from tests.scripted_model import streamed, whole


@pytest.mark.parametrize("case", bodies())
async def test_every_case_is_a_clean_first_attempt(case: str) -> None:
    text = case.startswith(("chat", "paced"))
    stream = b'"stream": true' in bodies()[case]
    events = TEXT_EVENTS if text else CALL_EVENTS
    async with behind(streamed(*events) if stream else whole(TEXT if text else CALL)) as there:
        status, body, headers = await there.post("/v1/chat/completions", bodies()[case])
        assert status == 200
        assert body == (b"".join(events) if stream else TEXT if text else CALL)
        assert there.model.asked == [bodies()[case]]
        if not stream:
            assert headers["x-forge-outcome"] == ("passed" if text else "clean")
