"""The stage `serialize`: write the request, in one of three modes of asking for tool calls (D30)."""

from collections.abc import Callable
from typing import Literal

from msgspec import Raw
from msgspec.structs import replace
from returns.result import Result, Success

from stages.effect import Request
from stages.halt import Halt
from stages.message import Assistant, History, size
from stages.pipeline import Stage, on
from stages.rules import Rules, legal
from stages.schema import project
from stages.state import Folded, Ledger, Prepared, Sent, State
from stages.wire import constrained, openai, prompted, valid

Mode = Literal["native", "prompted", "constrained"]
"""Tools in the request's own field; tools in the prompt; that, and a schema of the calls that are legal now."""


def serialize(
    rules: Rules,
    mode: Mode = "native",
    model: str = "",
    sampling: openai.Sampling | None = None,
    *,
    alternating: bool = False,
) -> Stage:
    """Write the view of a Folded state as a chat completions request. Equal states give equal bytes (D22).

    `alternating`: the model's template wants roles to take turns, so neighbours are joined; as text they always are.
    """
    head = openai.head(model, sampling or openai.Sampling())
    tail, tail_of_summary = _tail(rules, mode), _tail_of_summary(rules, mode)
    encode = _encoder(rules, mode, alternating=alternating)
    fixed = overhead(rules, mode)

    @on(Folded)
    def stage(state: State, phase: Folded) -> Result[State, Halt]:
        extends = state.sent.mode == mode and _extends(phase.view, state.sent.view)
        before = state.sent if extends else Sent()
        added = phase.view[len(before.view) :]
        messages = before.request.messages + (encode(added) if added else ())
        request = Request(head=head, messages=messages, tail=tail_of_summary if phase.summary else tail(state.ledger))
        sent = Sent(
            mode=mode,
            view=phase.view,
            size=before.size + sum(map(size, added)),
            request=request,
            length=len(state.history),
            last=state.history[-1] if state.history else None,
        )
        prepared = Prepared(request=request, summary=phase.summary)
        return Success(replace(state, sent=sent).note(prompt_size=fixed + sent.size).to(prepared))

    return stage


def overhead(rules: Rules, mode: Mode) -> int:
    """Characters of every prompt that are not history: the tools (D17). A schema constraint is not shown to a model."""
    if mode == "native":
        return len(bytes(openai.encode_tools(rules.tools))) if rules.tools else 0
    return len(prompted.instructions(rules.tools))


Encoder = Callable[[History], tuple[Raw, ...]]


def _encoder(rules: Rules, mode: Mode, *, alternating: bool) -> Encoder:
    if mode == "native" and alternating:
        return lambda history: openai.encode_messages(openai.encode_history(valid.alternating(history)))
    if mode == "native":
        return lambda history: openai.encode_messages(openai.encode_history(history))
    text = prompted.instructions(rules.tools)
    return lambda history: openai.encode_messages(prompted.encode_history(history, text))


def _extends(view: History, before: History) -> bool:
    """Whether the view goes on where the last one ended, so that what was written then can be kept.

    A reply after anything but a reply begins a message of its own in every mode; others may have to be joined.
    """
    known = len(before)
    if view[:known] != before:
        return False
    return len(view) == known or (isinstance(view[known], Assistant) and not isinstance(view[known - 1], Assistant))


def _tail(rules: Rules, mode: Mode) -> Callable[[Ledger], Raw]:
    if mode == "constrained":
        return _constraint(rules)
    fixed = _tail_of_summary(rules, mode)
    return lambda _: fixed


def _tail_of_summary(rules: Rules, mode: Mode) -> Raw:
    """The end of a request for words. The tools stay in it, for they stand at the beginning of the prompt."""
    if mode == "constrained":
        return openai.tail(None, constrained.response_format(constrained.SUMMARY))
    return openai.tail(openai.encode_tools(rules.tools) if mode == "native" and rules.tools else None, None)


def _constraint(rules: Rules) -> Callable[[Ledger], Raw]:
    """The request's end with the schema of the calls that are legal then, and no other (D30)."""
    branches = {
        tool.name: constrained.branch(tool, project(tool.parameters, "llama.cpp").schema) for tool in rules.tools
    }

    def end(ledger: Ledger) -> Raw:
        schema = constrained.one_of([branches[tool.name] for tool in legal(rules, ledger)])
        return openai.tail(None, constrained.response_format(schema))

    return end
