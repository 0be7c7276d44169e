"""Own checks: functions of the user's that say what is wrong with a call, and the past calls that they are shown."""

from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import TypeGuard

import msgspec
from msgspec import Struct

from stages.grounding.calculated_arguments import with_results
from stages.message import Assistant, Kind, Tool
from stages.options.functions import unfit_function
from stages.policy.listing import value_of
from stages.schema.value import Json
from stages.state import State
from stages.tool import ToolSpec
from stages.view.recall import RECALL


class PastCall(Struct, frozen=True, kw_only=True):
    """A call that has succeeded. `result` is what the model was told: a JSON value, or else a text."""

    tool: str
    arguments: Mapping[str, object]
    result: Json


CheckOfArguments = Callable[[dict[str, object]], str | None]
"""A pure function of a call's arguments: what is wrong with them, a sentence for the model; None: nothing."""

CheckOfResults = Callable[[dict[str, object], tuple[PastCall, ...]], str | None]
"""The same of a call's arguments and of the calls that have succeeded before it, the last one last."""

CompletionCheck = CheckOfArguments | CheckOfResults
"""Either of them; which, its parameters say."""

AnyCheck = Callable[..., str | None]
"""A completion check in a value that survives JSON without one: msgspec knows no union of two kinds of functions."""


def problem_with(
    check: CheckOfResults, arguments: str, calculating: ToolSpec | None, past: tuple[PastCall, ...]
) -> str | None:
    """What the check says is wrong with a call of these arguments; None: nothing.

    `calculating` is its tool where that has calculated arguments: the check is given their results.
    """
    try:
        worked_out = with_results(arguments, calculating) if calculating else arguments
    except ValueError as error:
        return f"{error}."
    return check(_arguments(worked_out), past)


def sees_results(check: CompletionCheck) -> TypeGuard[CheckOfResults]:
    """Whether the check is to be called with what was found out, beside the arguments."""
    return not _of_arguments(check) and unfit_function(check, "arguments", "results") is None


def _of_arguments(check: CompletionCheck) -> TypeGuard[CheckOfArguments]:
    return unfit_function(check, "arguments") is None


def of_both(check: CompletionCheck) -> CheckOfResults:
    """The check as one of both. TypeError for a function of other parameters."""
    if _of_arguments(check):
        of_one = check
        return lambda arguments, _: of_one(arguments)
    if sees_results(check):
        return check
    raise TypeError(f"a completion check takes (arguments) or (arguments, results): {unfit_function(check, '')}")


def past_calls(state: State) -> tuple[PastCall, ...]:
    """The calls that have succeeded, in their order; what compaction cut of them is there where the record has it."""
    return tuple(_past_calls(state))


def _past_calls(state: State) -> Iterator[PastCall]:
    cut = {entry.call_id: entry for entry in state.cleared}
    here = {message.call_id for message in state.history if isinstance(message, Tool)}
    for entry in state.cleared:
        if entry.call_id not in here and entry.status == "succeeded":
            yield PastCall(
                tool=entry.name, arguments=MappingProxyType(_arguments(entry.arguments)), result=value_of(entry.text)
            )
    made: dict[str, str] = {}
    for message in state.history:
        match message:
            case Assistant(calls=calls):
                made.update((call.id, call.arguments) for call in calls)
            case Tool(kind=Kind.TOOL_RESULT, status="succeeded", name=name, call_id=call_id) if name != RECALL.name:
                text = cut[call_id].text if call_id in cut else message.text
                yield PastCall(
                    tool=name, arguments=MappingProxyType(_arguments(made.get(call_id, "{}"))), result=value_of(text)
                )
            case _:
                pass


_members: msgspec.json.Decoder[dict[str, object]] = msgspec.json.Decoder(dict[str, object])


def _arguments(text: str) -> dict[str, object]:
    return _members.decode(text)
