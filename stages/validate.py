"""The stage `validate`: from a reply to calls whose names and arguments are right, or a precise correction."""

from collections.abc import Mapping
from typing import assert_never

from msgspec.structs import replace

from stages import nudges, rescue
from stages.effect import Reply
from stages.execution.approvals import refused
from stages.grounding.calculated_arguments import argument_check
from stages.halt import BadReplies, Halt, ToolsFailing
from stages.message import Assistant, Kind, Message, Tool, ToolCall, User, call_id
from stages.options.option_checks import checked
from stages.pipeline import Stage, on, pipeline
from stages.policy.rules import Rules, legal_tools, pending
from stages.reading.provenance import Repeated, sieve, told
from stages.reading.replies import Judged, Reading, in_a_sentence, parameters_of, reader
from stages.rescue import Family, Names
from stages.schema import Check, Fits, Misfit
from stages.state import Answered, Done, Edited, Ready, Said, State, Vetted
from stages.wire import valid
from stages.wire.prompted import forms as prompted


@checked
def validate(
    rules: Rules,
    *,
    in_text: bool = False,
    families: tuple[Family, ...] | None = None,
    checks: Mapping[str, Check] | None = None,
    form: prompted.Form = prompted.JSON,
) -> Stage:
    """Read the reply of an Answered state; check what a person wrote in an Edited one.

    Ends in Vetted; in Done with `Said` where text is welcome; in Ready with corrections and a count; or
    halts with `BadReplies` (no usable call) or `ToolsFailing` (arguments that don't fit), once their maximum
    is passed. `in_text`: the request asked for calls as text (modes prompted and constrained). `families` are the
    grammars in which calls are looked for, None: all that forge knows; empty: none, as if rescue were off. `checks`
    are those of the tools' arguments, where they are compiled already; `form` is the one in which calls as text were
    asked for.
    """
    known = rescue.FAMILIES if families is None else families
    compiled = checks or {tool.name: argument_check(tool) for tool in rules.tools}
    read = reader(rules, in_text=in_text, families=known, checks=compiled, form=form)
    names = Names({tool.name: parameters_of(tool) for tool in rules.tools})
    sift = sieve(rules.tools, compiled, names, known)

    @on(Answered)
    def stage(state: State, phase: Answered) -> State | Halt:
        sifted = sift(state, read(phase.reply))
        state, reading = sifted.state, sifted.reading
        if sifted.repeated and not reading.calls:
            return _only_repeats(state, phase.reply, reading, sifted.repeated, rules)
        if not reading.calls:
            return _no_call(state, phase.reply, reading, rules)
        ledger = state.ledger
        calls = _numbered(reading.calls, ledger.ids)
        ids = ledger.ids + len(calls)
        if [judged for judged in reading.calls if judged.fault]:
            return _bad_calls(state.note(ids=ids), reading, calls, rules, cut=phase.reply.finish == "length")
        said = replace(reading.said, calls=calls, turn=ledger.turn)
        vetted = Vetted(said=said, notice=_notice(state, reading, sifted.repeated))
        return replace(state, ledger=replace(ledger, ids=ids, retries=0), phase=vetted)

    @on(Edited)
    def edited(state: State, phase: Edited) -> State | Halt:
        if phase.fit:
            return state
        match compiled[phase.ask.call.name](phase.arguments):
            case Fits(arguments=arguments):
                return state.to(replace(phase, arguments=arguments, fit=True))
            case Misfit(problems=problems):
                return state.to(refused(phase, "; ".join(map(in_a_sentence, problems))))
            case other:
                assert_never(other)

    return pipeline(stage, edited)


def _notice(state: State, reading: Reading, repeated: tuple[Repeated, ...]) -> str:
    """What the model is told after the results of its calls."""
    beside = nudges.repeats_beside(told(repeated, state)) if repeated else ""
    return "\n".join(filter(None, (reading.notice, beside)))


def _no_call(state: State, reply: Reply, reading: Reading, rules: Rules) -> State | Halt:
    if reading.damage is None and reading.said.text.strip() and _is_welcome(state, rules):
        return _said(state, reading, reading.said.text)
    text = _correction(reply, reading, [tool.name for tool in legal_tools(rules, state.ledger)])
    nudge = User(text=text, kind=Kind.RETRY_NUDGE, turn=state.ledger.turn)
    return _nudged(state, reply, _spoken(state, reading, reading.said.text), nudge, rules)


def _only_repeats(
    state: State, reply: Reply, reading: Reading, repeated: tuple[Repeated, ...], rules: Rules
) -> State | Halt:
    """A reply whose calls only repeat some: a text that quotes them, or, without any words of its own, a mistake."""
    if not reading.alone and _is_welcome(state, rules):
        return _said(state, reading, reading.whole)
    text = nudges.repeats(told(repeated, state), [tool.name for tool in legal_tools(rules, state.ledger)])
    nudge = User(text=text, kind=Kind.PROVENANCE_NUDGE, turn=state.ledger.turn)
    return _nudged(state, reply, _spoken(state, reading, reading.whole), nudge, rules)


def _is_welcome(state: State, rules: Rules) -> bool:
    """Whether a text is an answer now."""
    return rules.on_text == "accept" and not pending(rules, state.ledger)


def _said(state: State, reading: Reading, text: str) -> State:
    return state.say(_spoken(state, reading, text)).to(Done(outcome=Said(text=text.strip())))


def _spoken(state: State, reading: Reading, text: str) -> Assistant:
    return replace(reading.said, text=text, turn=state.ledger.turn)


def _nudged(state: State, reply: Reply, spoken: Assistant, nudge: User, rules: Rules) -> State | Halt:
    """The next turn, after a reply without a call that can be used."""
    retries = state.ledger.retries + 1
    if retries > rules.max_retries:
        cut = reply.finish == "length"
        return BadReplies(attempts=retries, problem=nudge.text, raw=reply.text, cut=cut)
    # An empty assistant message is refused by some servers and tells nobody anything.
    new = (spoken, nudge) if spoken.text.strip() else (nudge,)
    return state.say(*new).note(retries=retries).to(Ready())


def _correction(reply: Reply, reading: Reading, allowed: list[str]) -> str:
    if reply.finish == "length":
        return nudges.cut_off(allowed)
    if not reading.said.text.strip() and reading.damage is None:
        return nudges.empty(allowed)
    return nudges.bare_text(allowed, reading.damage)


def _numbered(calls: tuple[Judged, ...], used: int) -> tuple[ToolCall, ...]:
    """The calls under forge's own ids, counted up, so that equal runs give equal bytes."""
    return tuple(
        [
            ToolCall(id=call_id(number), name=c.name, arguments=c.arguments, origin=c.origin, repairs=c.repairs)
            for number, c in enumerate(calls, start=used + 1)
        ]
    )


def _bad_calls(state: State, reading: Reading, calls: tuple[ToolCall, ...], rules: Rules, *, cut: bool) -> State | Halt:
    """Refuse the batch. Arguments that don't fit drain the tool errors, unknown names the retries."""
    misfit = next((judged for judged in reading.calls if judged.fault == "bad_arguments"), None)
    errors = state.ledger.tool_errors + bool(misfit)
    retries = state.ledger.retries + (misfit is None)
    if misfit and errors > rules.max_tool_errors:
        return ToolsFailing(tool=misfit.name, attempts=errors, error=misfit.correction, cut=cut)
    if retries > rules.max_retries:
        raw = "\n".join(f"{judged.name}({judged.arguments})" for judged in reading.calls)
        wrong = next(judged for judged in reading.calls if judged.fault)
        return BadReplies(attempts=retries, problem=wrong.correction, raw=raw, cut=cut)
    corrected = state.say(*_answers(reading, calls, state.ledger.turn))
    return corrected.note(tool_errors=errors, retries=retries).to(Ready())


def _answers(reading: Reading, calls: tuple[ToolCall, ...], turn: int) -> tuple[Message, ...]:
    """The calls and a correction for each, in a form that every server accepts back."""
    texts = [judged.correction or nudges.beside_a_refused_call(judged.name) for judged in reading.calls]
    if all(map(_replayable, calls)):
        said = replace(reading.said, calls=calls, turn=turn)
        answers = (
            Tool(call_id=call.id, name=call.name, text=text, kind=Kind.RETRY_NUDGE, turn=turn)
            for call, text in zip(calls, texts, strict=True)
        )
        return (said, *answers)
    quoted = "\n".join(f"{call.name}({call.arguments})" for call in calls)
    words = "\n".join(filter(None, (reading.said.text, nudges.quote(quoted, 2000))))
    said = replace(reading.said, text=words, turn=turn)
    return (said, User(text="\n".join(texts), kind=Kind.RETRY_NUDGE, turn=turn))


def _replayable(call: ToolCall) -> bool:
    """Whether a server takes the call back: llama.cpp answers 500 to a history with damaged arguments."""
    return valid.TOOL_NAME.fullmatch(call.name) is not None and valid.is_object(call.arguments)
