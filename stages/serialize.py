"""The stage `serialize`: write the request, in one of three modes of asking for tool calls."""

from collections.abc import Callable, Collection
from decimal import Decimal
from typing import Literal

from msgspec import Raw
from msgspec.structs import replace

from stages.candidates import looked_up, needless_arguments, refused_values
from stages.effect import Request
from stages.halt import Halt
from stages.message import Assistant, History, System, size
from stages.offer import escalation_level, offered_tools, remember
from stages.options import checked
from stages.pipeline import Stage, on
from stages.rules import Rules, welcomes_words
from stages.schema import Target
from stages.seen import all_numbers, with_values
from stages.state import Folded, Gathered, Prepared, Sent, SourceValues, State
from stages.tokens import length
from stages.tool import ToolSpec
from stages.wire import valid, wires
from stages.wire.deltas import Sampling
from stages.wire.prompted import forms as prompted
from stages.wire.tool_schemas import ToolSchemas, call_schema, compiled_schemas, limited_calls, without_arguments
from stages.wire.wires import OPENAI, Branch, Wire, loosened

Mode = Literal["native", "prompted", "constrained"]
"""Tools in the request's own field; tools in the prompt; that, and a schema of the calls that are legal now."""


@checked
def serialize(
    rules: Rules,
    mode: Mode = "native",
    model: str = "",
    sampling: Sampling | None = None,
    *,
    wire: Wire = OPENAI,
    form: prompted.Form = prompted.JSON,
    alternating: bool = False,
    schemas: ToolSchemas | None = None,
) -> Stage:
    """Write the view of a Folded state as a request of that wire. Equal states give equal bytes.

    `form` is how calls are written as text, where they are. `alternating`: the model's template wants roles to take
    turns, so neighbours are joined; as text they always are. `schemas` are the tools', where they are compiled already.
    """
    options = sampling or Sampling()
    tail, tail_of_summary = _tail(rules, mode, wire, form, schemas), _tail_of_summary(rules, mode, wire, schemas)
    show = _shown(rules, mode, form, alternating=alternating)
    fixed = overhead(rules, mode, wire, form, schemas)
    spoken = f"{wire.name} {form.name}"
    lists = mode == "constrained" and any(tool.grounded or tool.calculated for tool in rules.tools)

    def noted(before: Sent, phase: Folded) -> tuple[Raw, ...]:
        """The messages with the notes after them; as text they are a part of the message before."""
        added = phase.view[len(before.view) :]
        before = before if added else Sent()
        added = added or phase.view
        return before.request.messages + wire.messages(show((*added, *phase.notes)))

    @on(Folded)
    def stage(state: State, phase: Folded) -> State | Halt:
        state = remember(rules, state)
        view, history, before = phase.view, state.history, state.sent
        seen = _as_seen(state, view)
        extends = before.whole and before.mode == mode and before.wire == spoken and _extends(view, before.view)
        if not extends:
            before = Sent()
        added = view[len(before.view) :]
        sizes = tuple(map(size, added))
        shown = before.size + sum(sizes)
        values = with_values(before.values, view, len(before.view)) if lists else ()
        request = Request(
            head=before.request.head if extends else wire.head(model, options, show(view)),
            messages=before.request.messages + (wire.messages(show(added)) if added else ()),
            tail=tail_of_summary if phase.summary else tail(seen, None if state.cleared else values),
        )
        sent = Sent(
            mode=mode,
            wire=spoken,
            view=view,
            size=shown,
            sizes=before.sizes + sizes,
            request=request,
            notes=phase.notes,
            values=values,
            length=len(history),
            last=history[-1] if history else None,
            offered=() if phase.summary else _limits(rules, seen, mode),
        )
        ledger = replace(state.ledger, prompt_size=fixed + shown + sum(map(size, phase.notes)))
        asked = replace(request, messages=noted(before, phase)) if phase.notes else request
        prepared = Prepared(request=asked, summary=phase.summary)
        return replace(state, sent=sent, ledger=ledger, phase=prepared)

    return stage


def _as_seen(state: State, view: History) -> State:
    """The state with nothing but what the model is shown: no value of a schema comes from anywhere else."""
    gathered = state.gathered if view == state.history else Gathered()
    return replace(state, history=view, cleared=(), gathered=gathered)


def _limits(rules: Rules, state: State, mode: Mode) -> tuple[str, ...]:
    """The tools of `Sent.offered`: empty where all legal tools are on offer."""
    if mode != "constrained" or escalation_level(rules, state) == "open":
        return ()
    return tuple(tool.name for tool in offered_tools(rules, state))


_REQUEST = 20
"""What a chat template adds to a prompt, by `tokens.length`: the beginning of the reply."""

_TOOLS = 500
"""What it says of the tools beside listing them: some hundred tokens."""


def overhead(
    rules: Rules,
    mode: Mode,
    wire: Wire = OPENAI,
    form: prompted.Form = prompted.JSON,
    schemas: ToolSchemas | None = None,
) -> int:
    """Characters of every prompt that are not history: the tools. A schema constraint is not shown to a model."""
    if mode == "native":
        tools = _tools(rules, wire, schemas)
        return _REQUEST + (0 if tools is None else _TOOLS + length(bytes(tools).decode()))
    return _REQUEST + length(form.instructions(rules.tools))


def _tools(rules: Rules, wire: Wire, schemas: ToolSchemas | None) -> Raw | None:
    """The tools in the request's own field for them; None where there are none."""
    if not rules.tools:
        return None
    return schemas.strict if schemas and wire.strict else wire.tools(rules.tools)


def _shown(rules: Rules, mode: Mode, form: prompted.Form, *, alternating: bool) -> Callable[[History], History]:
    """What the messages of a view become before a wire writes them: text alone, where calls and tools are text."""
    if mode == "native":
        return valid.alternating_history if alternating else lambda history: history
    text = form.instructions(rules.tools)
    return lambda history: prompted.as_text(history, text, form)


def _extends(view: History, before: History) -> bool:
    """Whether the view goes on where the last one ended, so that what was written then can be kept.

    A reply after anything but a reply begins a message of its own in every mode; others may have to be joined, and
    a system prompt has its own place.
    """
    known = len(before)
    if not known or view[:known] != before:
        return False
    if len(view) == known:
        return True
    kinds = [*map(type, view[known:])]
    return kinds[0] is Assistant and not isinstance(before[-1], Assistant) and System not in kinds


_Tail = Callable[[State, tuple[SourceValues, ...] | None], Raw]
"""The end of the request for a state as the model sees it, and the values in that; None: compaction has cut some.

The model may remember a value that was cut, and the schema must not name one that it is not shown.
"""


def _tail(rules: Rules, mode: Mode, wire: Wire, form: prompted.Form, schemas: ToolSchemas | None) -> _Tail:
    if mode == "constrained" and not rules.tools:
        return lambda *_: wire.tail(None, None)  # there is no call to hold a reply to
    if mode == "constrained":
        return _constraint(rules, wire, form, schemas or compiled_schemas(rules.tools))
    fixed = _tail_of_summary(rules, mode, wire, schemas)
    return lambda *_: fixed


def _tail_of_summary(rules: Rules, mode: Mode, wire: Wire, schemas: ToolSchemas | None) -> Raw:
    """The end of a request for words. The tools stay in it, for they stand at the beginning of the prompt."""
    if mode == "constrained":
        return wire.tail(None, wires.SUMMARY)
    return wire.tail(_tools(rules, wire, schemas) if mode == "native" else None, None)


def _constraint(rules: Rules, wire: Wire, form: prompted.Form, schemas: ToolSchemas) -> _Tail:
    """The request's end with the schema of the calls that are offered then, and no other; of words, where welcome."""
    wire = loosened(wire) if schemas.refused else wire
    target: Target = "openai-strict" if wire.strict else "llama.cpp"
    known = schemas.calls[target]

    def schema_of(tool: ToolSpec, seen: State, numbers: Collection[Decimal]) -> Branch:
        changed = tool.calculated or tool not in rules.tools
        call = call_schema(tool, target, numbers) if changed else known[tool.name]
        needless = needless_arguments(tool, seen) if tool.grounded else frozenset()
        return without_arguments(call, needless) if needless else call

    def tried(seen: State, values: tuple[SourceValues, ...]) -> dict[str, frozenset[str]]:
        texts = [text for one in values if one.source for text in one.texts or ()]
        bound = [tool for tool in rules.tools if tool.grounded]
        return {tool.name: looked_up(rules, seen.ledger, tool, texts) | refused_values(tool, seen) for tool in bound}

    def end(seen: State, values: tuple[SourceValues, ...] | None) -> Raw:
        tools = offered_tools(rules, seen) or rules.tools
        numbers = () if values is None else all_numbers(values)
        calls = [schema_of(tool, seen, numbers) for tool in tools]
        if values:
            calls = limited_calls(zip(tools, calls, strict=True), values, tried(seen, values))
        if form is prompted.LIST:
            words = welcomes_words(rules, seen.ledger)
            return wire.tail(None, wires.list_of(calls, words=words, wrapped=wire.strict))
        return wire.tail(None, wires.one_of(calls, wrapped=wire.strict))

    return end
