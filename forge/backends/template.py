"""What a chat template reveals: the format of calls, and orders of roles that it refuses.

The server renders synthetic conversations with it (llama.cpp, POST /apply-template); the results are analysed here.
"""

import logging
from collections.abc import Mapping

import httpx
import msgspec
from msgspec import Struct

from forge.backends.endpoints import RenderedPrompt
from forge.backends.questions import ask
from forge.errors import BackendError
from stages.rescue.chat_template import SAMPLE_KEY, SAMPLE_NAME, SAMPLE_TEXT, SAMPLE_VALUE, derive
from stages.rescue.found import Markers

_LONGEST = 100_000
"""Maximum characters of a rendered conversation."""

_REFUSALS = (400, 500)
"""Status of an answer about a conversation that the template refuses."""

_Message = Mapping[str, object]

_ASKED: _Message = {"role": "user", "content": "Go."}
_SAID: _Message = {"role": "assistant", "content": SAMPLE_TEXT}
# The server parses the arguments for a template that wants them as an object.
_FUNCTION = {"name": SAMPLE_NAME, "arguments": msgspec.json.encode({SAMPLE_KEY: SAMPLE_VALUE}).decode()}
_CALLED: _Message = {
    "role": "assistant",
    "content": "",
    "tool_calls": [{"id": "call00001", "type": "function", "function": _FUNCTION}],
}
_RESULT: _Message = {"role": "tool", "name": SAMPLE_NAME, "tool_call_id": "call00001", "content": SAMPLE_TEXT}

_PARAMETERS = {"type": "object", "properties": {}}
_TOOL = {"type": "function", "function": {"name": "other", "description": "", "parameters": _PARAMETERS}}


class Template(Struct, frozen=True, kw_only=True):
    """What is known of a chat template: the markers of its calls, None if it has no tools.

    `alternating`: it refuses two user messages in a row, or one right after a tool's result.
    """

    markers: Markers | None = None
    alternating: bool = False


async def examined(client: httpx.AsyncClient, root: str, model: str, chat_template: str) -> Template:
    """What the template reveals, in at most five questions to the server at `root`; nothing if it cannot be asked."""

    async def rendered(*messages: _Message) -> str | None:
        """The conversation as rendered; None if the template refuses it."""
        asked = {"model": model, "messages": messages, "tools": [_TOOL], "add_generation_prompt": False}
        answer = await ask(client, root + "/apply-template", msgspec.json.encode(asked), loading=0)
        if answer.status in _REFUSALS:
            return None
        found = answer.read(RenderedPrompt)
        if found is None or len(found.prompt) > _LONGEST:
            raise BackendError(f"{root}/apply-template answered {answer.status} without a usable rendering")
        return found.prompt

    try:
        if not chat_template or await rendered(_ASKED) is None:
            return Template()
        twice = await rendered(_ASKED, _ASKED)
        # No conversation ends with the assistant: the server would continue its message, or refuse to.
        with_text = await rendered(_ASKED, _SAID, _ASKED)
        with_call = await rendered(_ASKED, _CALLED, _RESULT)
        refused = with_call is not None and await rendered(_ASKED, _CALLED, _RESULT, _ASKED) is None
    except BackendError as error:
        logging.getLogger("forge").warning("the model's chat template could not be examined: %s", error)
        return Template()
    # A template that has the synthetic name in it means to mislead.
    markers = None
    if with_call and with_text and SAMPLE_NAME not in chat_template:
        markers = derive(with_call, with_text)
    return Template(markers=markers, alternating=twice is None or refused)
