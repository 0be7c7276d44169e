"""The initial state of a run: for a first message, after an earlier conversation, or after an earlier run."""

import re
from collections.abc import Mapping
from uuid import uuid4

from msgspec.structs import replace

from forge.errors import DefinitionError
from forge.workflow.checks import fill, placeholders
from stages.decoding import sound, sound_struct
from stages.deliver import interrupt
from stages.effect import Budget
from stages.execution import with_answer
from stages.fold import collapsed
from stages.message import Assistant, History, System, User, turn_of
from stages.state import Ledger, State

_CALL_ID = re.compile(r"call_(\d{1,12})")


def initial_state(
    budget: Budget, system_prompt: str, message: str, prompt_vars: Mapping[str, str], earlier: History
) -> State:
    """The initial state for that message; `earlier` is a conversation to continue, including its system prompt.

    DefinitionError for an empty message, or a `{placeholder}` of the system prompt that is not in `prompt_vars`.
    """
    turn = max(map(turn_of, earlier), default=0)
    ledger = Ledger(budget=budget, turn=turn, progress=turn, ids=last_id(earlier))
    asked = User(text=_said(message), turn=turn)
    if earlier:
        known = map(sound_struct, earlier)
        return State(history=(*known, asked), ledger=ledger, run=uuid4().hex)
    system = prompt(system_prompt, prompt_vars)
    return State(history=(*((System(text=system),) if system else ()), asked), ledger=ledger, run=uuid4().hex)


def next_state(budget: Budget, before: State, message: str) -> State:
    """The initial state for the next message of a conversation whose last run ended in the state `before`.

    It keeps the history without corrections and failed attempts, the results that can be recalled, what is known about
    the model's tokens, and calls with an unknown outcome. Steps, counts and the budget start afresh. If a call has
    asked the user something, the message is the answer: the run continues, with a budget of its own.
    """
    if (going_on := with_answer(before, _said(message), budget)) is not None:
        return replace(going_on, run=uuid4().hex)
    stopped = interrupt(before)
    kept, known = collapsed(stopped.history, over=True), stopped.ledger
    # What is true of the model, its server and the world outlives a message: measured tokens, refused tools, calls in
    # doubt. `turn` and `ids` continue because the messages that stay refer to them. All that rules count starts afresh.
    ledger = Ledger(
        budget=budget,
        turn=known.turn,
        progress=known.turn,
        ids=known.ids,
        fallback=known.fallback,
        model=known.model,
        tokens_per_character=known.tokens_per_character,
        report=known.report,
        in_doubt=known.in_doubt,
    )
    asked = User(text=_said(message), turn=known.turn)
    return State(history=(*kept, asked), ledger=ledger, cleared=before.cleared, run=uuid4().hex)


def _said(message: str) -> str:
    """The message with valid Unicode. DefinitionError for an empty one."""
    if not message.strip():
        raise DefinitionError(("the message is empty; say what the model should do",))
    return sound(message)


def last_id(history: History) -> int:
    """The highest number among forge's own call ids, so that later ones are unique."""
    calls = (call.id for message in history if isinstance(message, Assistant) for call in message.calls)
    return max((int(found[1]) for found in map(_CALL_ID.fullmatch, calls) if found), default=0)


def prompt(template: str, values: Mapping[str, str]) -> str:
    """The system prompt with its placeholders filled in. DefinitionError lists those without a value."""
    if missing := sorted(placeholders(template) - values.keys()):
        raise DefinitionError(
            tuple(
                f"the system prompt has the placeholder {{{name}}}, and prompt_vars has no {name!r}; "
                f"pass it (in a terminal, --var {name}=…), or write {{{{{name}}}}} for literal braces"
                for name in missing
            )
        )
    return sound(fill(template, values))
