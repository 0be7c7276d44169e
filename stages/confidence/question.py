"""The question to a person about calls that the model is not sure of."""

import msgspec

from stages.confidence.choice_probability import Choice
from stages.effect import NeedsInput
from stages.phase import Vetted

_SUGGESTED = 8


def question_about(phase: Vetted) -> NeedsInput:
    """The question which of the offered tools or values is meant, by the least sure choice, the chosen one first.

    Where nothing is known of the choices: whether the calls are meant.
    """
    choices = [(call.tool, choice) for call in phase.choices if call for choice in call.choices]
    if not choices:
        calls = ", ".join(f"{call.name} {call.arguments}" for call in phase.calls)
        return NeedsInput(question=f"Is this what is meant: {calls}?", suggestions=("yes", "no"))
    tool, choice = min(choices, key=lambda one: one[1].probability)
    suggestions = _offered(choice)
    what = f"Which {choice.argument} is meant for {tool}" if choice.argument else "What is meant"
    return NeedsInput(question=f"{what}: {' or '.join(suggestions)}?", suggestions=suggestions)


def _offered(choice: Choice) -> tuple[str, ...]:
    others = [text for text in choice.offered if text != choice.chosen]
    return tuple(map(_plain, (choice.chosen, *others)[:_SUGGESTED]))


def _plain(text: str) -> str:
    value: object = msgspec.json.decode(text)
    return value if isinstance(value, str) else text
