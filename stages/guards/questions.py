"""Questions: none to the user that only repeats what the user has just asked, as small models do."""

import msgspec

from stages.message import Kind, ToolCall, User
from stages.nudges.guidance import asked_back
from stages.objection import Custom, Objection
from stages.state import State
from stages.verdict import Guard, Verdict


def no_echoes(tool: str, argument: str) -> Guard:
    """Object to calls of the tool whose argument has the words of the user's last message. Counts as a refusal."""

    def guard(state: State, calls: tuple[ToolCall, ...]) -> Verdict:
        said = next((m for m in reversed(state.history) if isinstance(m, User) and m.kind is Kind.USER_INPUT), None)
        if said is None:
            return []
        words = _words(said.text)
        return [
            Objection(call=call, wrong=Custom(text=asked_back(tool)))
            for call in calls
            if call.name == tool and words and _words(_value(call, argument)) == words
        ]

    return guard


def _value(call: ToolCall, argument: str) -> str:
    value = msgspec.json.decode(call.arguments, type=dict[str, object]).get(argument)
    return value if isinstance(value, str) else ""


def _words(text: str) -> list[str]:
    """The words of the text, without case and punctuation."""
    return "".join(one if one.isalnum() else " " for one in text.casefold()).split()
