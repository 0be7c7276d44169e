"""Corrections: calls with what is wrong with them, as messages that every server accepts back."""

from msgspec.structs import replace

from stages.effect import Refused
from stages.message import Kind, Message, Tool, ToolCall, User
from stages.nudges import quote
from stages.reading.replies import Reading
from stages.wire import valid


def corrected_calls(
    reading: Reading, calls: tuple[ToolCall, ...], answers: tuple[Refused, ...], turn: int
) -> tuple[Message, ...]:
    """The calls with their answers, in a form that every server accepts back."""
    if all(map(_replayable, calls)):
        said = replace(reading.said, calls=calls, turn=turn)
        corrections = (
            Tool(call_id=call.id, name=call.name, text=answer.text, kind=answer.kind, turn=turn)
            for call, answer in zip(calls, answers, strict=True)
        )
        return (said, *corrections)
    quoted = "\n".join(f"{call.name}({call.arguments})" for call in calls)
    words = "\n".join(filter(None, (reading.said.text, quote(quoted, 2000))))
    said = replace(reading.said, text=words, turn=turn)
    return (said, User(text="\n".join(answer.text for answer in answers), kind=Kind.RETRY_NUDGE, turn=turn))


def _replayable(call: ToolCall) -> bool:
    """Whether a server takes the call back: llama.cpp answers 500 to a history with damaged arguments."""
    return valid.TOOL_NAME.fullmatch(call.name) is not None and valid.is_object(call.arguments)
