"""The stage `serialize`: write the request, for one of several models, in one of three modes."""

from collections.abc import Callable, Mapping
from hashlib import blake2b

from msgspec import Raw
from msgspec.structs import replace

from stages.effect import Request
from stages.halt import Halt
from stages.message import Assistant, History, System, size
from stages.offer import Offer, offer, remembering
from stages.options import checked
from stages.pipeline import Stage, StageError, on
from stages.rules import Rules
from stages.schema import SchemaTarget
from stages.state import MAIN, Asked, Folded, Held, Memo, Prepared, Prompt, State, Written
from stages.tokens import length
from stages.tool import ToolSpec
from stages.wire import prompted, tool_schemas, valid
from stages.wire.target import Target
from stages.wire.tool_schemas import Branch, ToolSchemas, call_schema, compiled_schemas
from stages.wire.wires import Wire, loosened

_MAIN = Target()

_Write = Callable[[State, Folded], State]


@checked
def serialize(rules: Rules, targets: Target | Mapping[str, Target] = _MAIN) -> Stage:
    """Write the view of a Folded state as a request to its target model. Equal states give equal bytes.

    `targets` are the models by name (`Ready.target`); a single one is the run's own model, `main`. This is the only
    place that decides on the mode: once a server has refused tools, they are in the prompt. Raises StageError if the
    target of a state is not among them. Only a summary is then written by the run's own model, because a saved run may
    be resumed with another backend.
    """
    known = targets if isinstance(targets, Mapping) else {MAIN: targets}
    write = {
        (name, mode): _writing(rules, name, replace(target, mode=mode))
        for name, target in known.items()
        for mode in target.modes
    }

    @on(Folded)
    def stage(state: State, phase: Folded) -> State | Halt:
        name = phase.target if phase.target in known or not phase.summary else MAIN
        if name not in known:
            raise StageError(
                f"the run asks for the model {name!r}, and serialize was given {', '.join(known)}; give it "
                f"targets={{{name!r}: Target(…)}} too, and a backend that sends its requests there"
            )
        target = known[name]
        mode = "prompted" if target.falls_back and state.ledger.fallback else target.mode
        return write[name, mode](state, phase)

    return stage


def _writing(rules: Rules, name: str, target: Target) -> _Write:
    """A function that writes the requests to that model in that mode."""
    mode, wire, form = target.mode, target.wire, target.form
    tail, tail_of_summary = _tail(rules, target), _tail_of_summary(rules, target)
    show = _shown(rules, target)
    fixed = overhead(rules, target)
    spoken = f"{wire.name} {form.name}"
    narrows = mode == "constrained" or bool(rules.withheld)
    tools = _digest(bytes(_tools(rules, target) or b"")) if mode == "native" else b""
    remember, everything = remembering(rules), Offer(tools=rules.tools)

    def offered(state: State, view: History) -> tuple[Offer, tuple[Held, ...]]:
        """What the reply to this view may be, and what is not offered. Only a constraint leaves anything out."""
        # No list of values may name one that the model is not shown.
        seen = replace(state, history=view, cleared=(), memo=state.memo if view == state.history else Memo())
        now = offer(rules, seen)
        if mode == "constrained":
            return now, now.held
        return everything, tuple(held for held in now.held if held.by == "withheld")

    def noted(before: Written, phase: Folded) -> tuple[Raw, ...]:
        """The messages with the notes at the end. Written as text, a note becomes part of the message before it."""
        added = phase.view[len(before.prompt.view) :]
        before = before if added else Written()
        added = added or phase.view
        return before.request.messages + wire.messages(show((*added, *phase.notes)))

    def write(state: State, phase: Folded) -> State:
        state = remember(state)
        view, history = phase.view, state.history
        last = next((one for one in state.memo.written if one.prompt.target == name), Written())
        # The mode changes once the server has refused tools, and a resumed run may have a backend of another wire.
        same = (last.prompt.mode, last.wire) == (mode, spoken)
        before = last if same and _extends(view, last.prompt.view) else Written()
        known = len(before.prompt.view)
        added = view[known:]
        now, held = offered(state, view) if narrows and not phase.summary else (everything, ())
        request = Request(
            head=before.request.head if known else wire.head(target.model, target.sampling, show(view)),
            messages=before.request.messages + (wire.messages(show(added)) if added else ()),
            tail=tail_of_summary if phase.summary else tail(now),
        )
        characters = before.prompt.size + sum(map(size, added))
        prompt = Prompt(
            target=name,
            mode=mode,
            view=view,
            size=characters,
            whole=fixed + characters + sum(map(size, phase.notes)),
            length=len(history),
            held=held,
            tools=tools,
            first=before.prompt.first or _digest(bytes(request.head), *map(bytes, request.messages[:1])),
        )
        written = Written(prompt=prompt, wire=spoken, request=request)
        others = [one for one in state.memo.written if one.prompt.target != name]
        memo = replace(state.memo, written=(*others, written), last=history[-1] if history else None)
        asked = Asked(target=name, mode=mode, notes=phase.notes, tail=request.tail)
        noting = replace(request, messages=noted(before, phase)) if phase.notes else request
        return replace(
            state,
            prompts=(*[one for one in state.prompts if one.target != name], prompt),
            memo=memo,
            ledger=replace(state.ledger, prompt_size=prompt.whole),
            phase=Prepared(request=noting, summary=phase.summary, asked=asked),
        )

    return write


def _digest(*parts: bytes) -> bytes:
    return blake2b(b"".join(parts), digest_size=8).digest()


_REQUEST = 20
"""Characters (by `tokens.length`) that a chat template adds to a prompt: the beginning of the reply."""

_TOOLS = 500
"""Characters of its text around the list of tools: some hundred tokens."""


def overhead(rules: Rules, target: Target) -> int:
    """Characters of every prompt that are not history: the tools. The model does not see a schema constraint."""
    if target.mode == "native":
        tools = _tools(rules, target)
        return _REQUEST + (0 if tools is None else _TOOLS + length(bytes(tools).decode()))
    return _REQUEST + length(target.form.instructions(rules.tools))


def _tools(rules: Rules, target: Target) -> Raw | None:
    """The `tools` field of the request; None if there are no tools."""
    if not rules.tools:
        return None
    schemas, wire = target.schemas, target.wire
    return schemas.strict if schemas and wire.strict else wire.tools(rules.tools)


def _shown(rules: Rules, target: Target) -> Callable[[History], History]:
    """A function from a view to the messages for the wire, in which calls and tools may have to be text."""
    if target.mode == "native":
        return valid.alternating_history if target.alternating else lambda history: history
    form = target.form
    text = form.instructions(rules.tools)
    return lambda history: prompted.as_text(history, text, form)


def _extends(view: History, before: History) -> bool:
    """Whether the view continues the last one, so that the messages written then can be kept.

    A reply after anything but a reply starts a new message in every mode. Other messages may have to be joined, and a
    system prompt has its own place.
    """
    known = len(before)
    if not known or view[:known] != before:
        return False
    if len(view) == known:
        return True
    kinds = [*map(type, view[known:])]
    return kinds[0] is Assistant and not isinstance(before[-1], Assistant) and System not in kinds


_Tail = Callable[[Offer], Raw]


def _tail(rules: Rules, target: Target) -> _Tail:
    """The end of the request for an offer."""
    mode, wire = target.mode, target.wire
    if mode == "constrained" and not rules.tools:
        return lambda _: wire.tail(None, None)  # there is no call to hold a reply to
    if mode == "constrained":
        return _constraint(rules, wire, target.form, target.schemas or compiled_schemas(rules.tools))
    fixed = _tail_of_summary(rules, target)
    return lambda _: fixed


def _tail_of_summary(rules: Rules, target: Target) -> Raw:
    """The end of a request for words. The tools stay in it, for they stand at the beginning of the prompt."""
    if target.mode == "constrained":
        return target.wire.tail(None, tool_schemas.SUMMARY_SCHEMA)
    return target.wire.tail(_tools(rules, target) if target.mode == "native" else None, None)


def _constraint(rules: Rules, wire: Wire, form: prompted.Form, schemas: ToolSchemas) -> _Tail:
    """The end of the request with a schema of the offered calls only, and of words where they are welcome."""
    wire = loosened(wire) if schemas.refused else wire
    target: SchemaTarget = "openai-strict" if wire.strict else "llama.cpp"
    known = schemas.calls[target]

    def schema_of(tool: ToolSpec) -> Branch:
        return known[tool.name] if tool in rules.tools else call_schema(tool, target)

    def end(now: Offer) -> Raw:
        words = now.words or form.answers in now.names
        if words and form.name == "list" and not {*now.names} - {form.answers}:
            return wire.tail(None, tool_schemas.answer_alone(wrapped=wire.strict))
        calls = [schema_of(tool) for tool in now.tools or rules.tools if tool.name != form.answers]
        if form.name == "list":
            return wire.tail(None, tool_schemas.list_of(calls, words=words, wrapped=wire.strict))
        return wire.tail(None, tool_schemas.one_of(calls, wrapped=wire.strict))

    return end
