"""The stage `serialize`: write the request, in one of three modes of asking for tool calls (D30)."""

from collections.abc import Callable
from typing import Literal

from msgspec import Raw
from msgspec.structs import replace
from returns.result import Result, Success

from stages.halt import Halt
from stages.message import Assistant, History
from stages.pipeline import Stage, on
from stages.rules import Rules, legal
from stages.schema import project
from stages.state import Folded, Ledger, Prepared, Sent, State
from stages.wire import constrained, openai, prompted

Mode = Literal["native", "prompted", "constrained"]
"""Tools in the request's own field; tools in the prompt; that, and a schema of the calls that are legal now."""


def serialize(rules: Rules, mode: Mode = "native", model: str = "", sampling: openai.Sampling | None = None) -> Stage:
    """Write the view of a Folded state as a chat completions request. Equal states give equal bytes (D22)."""
    head = openai.head(model, sampling or openai.Sampling())
    tail = _tail(rules, mode)
    encode = _encoder(rules, mode)
    fixed = overhead(rules, mode)

    @on(Folded)
    def stage(state: State, phase: Folded) -> Result[State, Halt]:
        end = tail(state.ledger)
        body = b"".join((*_messages(state.sent, phase.view, head, encode), end))
        sent = Sent(view=phase.view, size=state.measure(phase.view), body=Raw(body), end=len(body) - len(end))
        prepared = Prepared(body=sent.body)
        return Success(replace(state, sent=sent).note(prompt_size=fixed + sent.size).to(prepared))

    return stage


def overhead(rules: Rules, mode: Mode) -> int:
    """Characters of every prompt that are not history: the tools (D17). A schema constraint is not shown to a model."""
    if mode == "native":
        return len(bytes(openai.encode_tools(rules.tools))) if rules.tools else 0
    return len(prompted.instructions(rules.tools))


Encoder = Callable[[History], tuple[openai.WireMessage, ...]]


def _encoder(rules: Rules, mode: Mode) -> Encoder:
    if mode == "native":
        return openai.encode_history
    text = prompted.instructions(rules.tools)
    return lambda history: prompted.encode_history(history, text)


def _messages(sent: Sent, view: History, head: bytes, encode: Encoder) -> tuple[bytes | memoryview, ...]:
    """The request up to its last message, in parts: where the view extends the last request's, so do the bytes."""
    known, before = len(sent.view), memoryview(sent.body)
    added = view[known:]
    if known and view[:known] == sent.view and before[: len(head)] == head:
        if not added:
            return (before[: sent.end],)
        # A reply begins a message of its own in every mode; other messages may be joined to their neighbour.
        if isinstance(added[0], Assistant):
            return before[: sent.end], b",", openai.encode_messages(encode(added))
    return head, openai.encode_messages(encode(view))


def _tail(rules: Rules, mode: Mode) -> Callable[[Ledger], bytes]:
    if mode == "constrained":
        return _constraint(rules)
    fixed = openai.tail(openai.encode_tools(rules.tools) if mode == "native" and rules.tools else None, None)
    return lambda _: fixed


def _constraint(rules: Rules) -> Callable[[Ledger], bytes]:
    """The request's end with the schema of the calls that are legal then, and no other (D30)."""
    branches = {
        tool.name: constrained.branch(tool, project(tool.parameters, "llama.cpp").schema) for tool in rules.tools
    }

    def end(ledger: Ledger) -> bytes:
        schema = constrained.one_of([branches[tool.name] for tool in legal(rules, ledger)])
        return openai.tail(None, constrained.response_format(schema))

    return end
