"""The stage `serialize`: write the request, in one of three modes of asking for tool calls (D30)."""

from collections.abc import Callable
from typing import Literal, assert_never

from returns.result import Result, Success

from stages.halt import Halt
from stages.message import History, size
from stages.pipeline import Stage, on
from stages.rules import Rules, legal
from stages.state import Folded, Ledger, Prepared, State
from stages.wire import constrained, openai, prompted

Mode = Literal["native", "prompted", "constrained"]
"""Tools in the request's own field; tools in the prompt; that, and a schema of the calls that are legal now."""

Writer = Callable[[History, Ledger], openai.Request]


def serialize(rules: Rules, mode: Mode = "native", model: str = "", sampling: openai.Sampling | None = None) -> Stage:
    """Write the view of a Folded state as a chat completions request. Equal states give equal bytes (D22)."""
    write = _writer(rules, mode, model)
    options = sampling or openai.Sampling()
    fixed = overhead(rules, mode)

    @on(Folded)
    def stage(state: State, phase: Folded) -> Result[State, Halt]:
        body = openai.encode_request(write(phase.view, state.ledger), options)
        prompt_size = fixed + sum(map(size, phase.view))
        return Success(state.note(prompt_size=prompt_size).to(Prepared(body=body)))

    return stage


def overhead(rules: Rules, mode: Mode) -> int:
    """Characters of every prompt that are not history: the tools (D17). A schema constraint is not shown to a model."""
    if mode == "native":
        return len(bytes(openai.encode_tools(rules.tools))) if rules.tools else 0
    return len(prompted.instructions(rules.tools))


def _writer(rules: Rules, mode: Mode, model: str) -> Writer:
    match mode:
        case "native":
            return _native(rules, model)
        case "prompted":
            text = prompted.instructions(rules.tools)
            return lambda view, _: openai.Request(model=model, messages=prompted.encode_history(view, text))
        case "constrained":
            return _constrained(rules, model)
        case _:
            assert_never(mode)


def _native(rules: Rules, model: str) -> Writer:
    tools = openai.encode_tools(rules.tools) if rules.tools else None
    return lambda view, _: openai.Request(model=model, messages=openai.encode_history(view), tools=tools)


def _constrained(rules: Rules, model: str) -> Writer:
    text = prompted.instructions(rules.tools)
    branches = {tool.name: constrained.branch(tool, tool.parameters) for tool in rules.tools}

    def write(view: History, ledger: Ledger) -> openai.Request:
        schema = constrained.one_of([branches[tool.name] for tool in legal(rules, ledger)])
        return openai.Request(
            model=model,
            messages=prompted.encode_history(view, text),
            response_format=constrained.response_format(schema),
        )

    return write
