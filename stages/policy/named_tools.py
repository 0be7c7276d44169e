"""Named tools: those that the user, a result or an error has spoken of in this run."""

import re
from collections.abc import Iterable

from stages.message import History, Kind, Tool, User
from stages.nudges.outcomes import status_of

_WORDS = re.compile(r"[a-z0-9]+")
_PARTS = re.compile(r"[A-Z]?[a-z0-9]+|[A-Z]+(?![a-z])")


def named_tools(names: Iterable[str], history: History) -> frozenset[str]:
    """Which of these tools were spoken of: by name in an answer, or by every word of the name in the user's message.

    "Cancel the order if it is late" speaks of `cancel_order`; "report on order 7" does not. An error that says "call
    confirm_address first" speaks of `confirm_address`. Corrections of forge's own don't count: they list tools.
    """
    wanted = tuple(names)
    if not wanted:
        return frozenset()
    answers = [m.text for m in history if isinstance(m, Tool) and _ran(m)]
    asked = [_WORDS.findall(m.text.lower()) for m in history if isinstance(m, User) and m.kind is Kind.USER_INPUT]
    return frozenset(
        name for name in wanted if _in_answers(name, answers) or any(_all_in(name, said) for said in asked)
    )


def _ran(answer: Tool) -> bool:
    """Whether it is the answer of a tool. A client sends a correction back as one, of which forge's mark is left."""
    return answer.kind is Kind.TOOL_RESULT and status_of(answer.text) != "not_run"


def _in_answers(name: str, answers: Iterable[str]) -> bool:
    whole = re.compile(rf"(?<!\w){re.escape(name)}(?!\w)")
    # Most answers do not hold the name at all, and that is found out many times faster.
    return any(name in answer and whole.search(answer) for answer in answers)


def _all_in(name: str, said: list[str]) -> bool:
    """Whether each part of the name begins a word: "cancelled orders" has `cancel` and `order`."""
    parts = [part.lower() for part in _PARTS.findall(name)]
    return bool(parts) and all(any(word.startswith(part) for word in said) for part in parts)
