"""The stage `validate`: a reply becomes calls with valid names and arguments, an answer, or a correction."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import assert_never

from msgspec.structs import replace

from stages import rescue
from stages.effect import Refused, Reply, Said
from stages.execution import edit_refused
from stages.halt import BadReplies, Halt, ToolsFailing
from stages.message import Assistant, Kind, Message, Tool, ToolCall, User, call_id
from stages.nudges import quote
from stages.objection import (
    AmongWords,
    BadArguments,
    BareText,
    CutOff,
    Echo,
    Empty,
    MaybeMeant,
    NoCall,
    NothingDone,
    Objection,
    OnlyRepeats,
    Say,
    in_a_sentence,
    in_forges_words,
    mistake_of,
    refusals,
    render,
    repeats_beside,
    with_mistakes,
)
from stages.options import checked
from stages.pipeline import Stage, on
from stages.reading.echoes import is_echo
from stages.reading.provenance import Sifted, sieve
from stages.reading.replies import Judged, Reading, reader
from stages.reading.toolset import Toolset, toolset_of
from stages.rules import Rules, legal_tools, may_have_meant_a_call, welcomes_words
from stages.schema import Fits, Misfit
from stages.state import MAIN, Answered, Done, Edited, Ready, State, Vetted
from stages.tool import RESPOND
from stages.wire import valid
from stages.wire.target import Target

_MAIN = Target()


@checked
def validate(
    rules: Rules,
    targets: Target | Mapping[str, Target] = _MAIN,
    *,
    tools: Toolset | None = None,
    say: Say = in_forges_words,
) -> Stage:
    """Read the reply of an Answered state; check the arguments that a person edited in an Edited one.

    The next phase is Vetted; Done with `Said`, if text is welcome; or Ready, after corrections, which are counted. Past
    their maximum, halts with `BadReplies` (no usable call) or `ToolsFailing` (arguments that do not fit the schema).
    The reply is read with the settings of the model that gave it: pass the `targets` of `serialize`. `tools` are the
    rules' tools, if they are compiled already (`toolset_of`). `say` words the corrections.
    """
    compiled = tools or toolset_of(rules.tools)
    known = targets if isinstance(targets, Mapping) else {MAIN: targets}
    reading_of = {name: _sifting(rules, target, compiled) for name, target in known.items()}

    def answered(state: State, phase: Answered) -> State | Halt:
        sifted = reading_of.get(phase.asked.target, reading_of[MAIN])(state, phase.reply)
        asked = () if "ask_if_meant" in rules.without else state.ledger.asked_about
        if asked is not None:
            sifted = _answering(sifted, asked)
            denied = sifted.reading.damage is None and all(map(_is_among_words, sifted.reading.calls))
            if denied and state.ledger.asked_about is not None and welcomes_words(rules, state.ledger):
                return _first_said(sifted)
        elif asking := _asked_about(sifted, phase.reply, rules, say):
            return asking
        reading = sifted.reading
        if not reading.calls:
            return _no_call(sifted, phase.reply, rules, say)
        if all(judged.name == RESPOND for judged in reading.calls) and may_have_meant_a_call(rules, state):
            return _asked_to_act(sifted.state, say, rules)
        ledger = sifted.state.ledger
        calls = tuple(
            [
                ToolCall(id=call_id(number), name=c.name, arguments=c.arguments, origin=c.origin, repairs=c.repairs)
                for number, c in enumerate(reading.calls, start=ledger.ids + 1)
            ]
        )
        ids = ledger.ids + len(calls)
        if any(judged.wrong for judged in reading.calls):
            noted = replace(sifted, state=sifted.state.note(ids=ids))
            return _bad_calls(noted, phase.reply, calls, rules, say)
        said = replace(reading.said, calls=calls, turn=ledger.turn)
        repeats = repeats_beside(sifted.repeated) if sifted.repeated else ""
        notice = "\n".join(filter(None, (reading.notice, repeats)))
        vetted = Vetted(said=said, notice=notice, asked=phase.asked)
        return replace(sifted.state, ledger=replace(ledger, ids=ids, retries=0), phase=vetted)

    def edited(state: State, phase: Edited) -> State | Halt:
        if phase.fit:
            return state
        match compiled.checks[phase.ask.call.name](phase.arguments):
            case Fits(arguments=arguments):
                return state.to(replace(phase, arguments=arguments, fit=True))
            case Misfit(problems=problems):
                return state.to(edit_refused(phase, in_a_sentence(problems)))
            case other:
                assert_never(other)

    @on(Answered, Edited)
    def stage(state: State, phase: Answered | Edited) -> State | Halt:
        return answered(state, phase) if isinstance(phase, Answered) else edited(state, phase)

    return stage


def _sifting(rules: Rules, target: Target, tools: Toolset) -> Callable[[State, Reply], Sifted]:
    """A function that reads the replies of that model, and sifts out calls that only repeat what it was shown."""
    known = (lambda: rescue.OPENERS) if target.families is None else target.families
    in_text = target.modes != {"native"}
    read = reader(rules, in_text=in_text, families=known, tools=tools, form=target.form)
    sift = sieve(tools)
    return lambda state, reply: sift(state, read(reply))


def _no_call(sifted: Sifted, reply: Reply, rules: Rules, say: Say) -> State | Halt:
    """The end of the run, or a correction, after a reply without a call, or whose calls only repeat what was shown."""
    state, reading = sifted.state, sifted.reading
    allowed, spoken = _allowed(state, rules), bool(reading.said.text.strip())
    wrong: NoCall = BareText(allowed=allowed, damage=reading.damage)
    if sifted.repeated:
        # With words around them, it is a text that quotes calls, and so an answer; calls alone are a mistake.
        if not reading.alone and welcomes_words(rules, state.ledger):
            return _said(sifted, reply, reading.whole, rules, say)
        wrong = OnlyRepeats(repeats=sifted.repeated, allowed=allowed)
    elif reading.damage is None and spoken and welcomes_words(rules, state.ledger):
        if may_have_meant_a_call(rules, state):
            return _asked_to_act(state, say, rules)
        return _said(sifted, reply, reading.said.text, rules, say)
    elif reply.finish == "length":
        wrong = CutOff(allowed=allowed)
    elif reading.damage is None and not spoken:
        wrong = Empty(allowed=allowed)
    return _nudged(sifted, reply, wrong, rules, say)


# A call among words may be meant, or only shown to the user. The model is asked once: if its next reply makes the call,
# the call runs; if it does anything else, the first reply is the answer, where text is welcome. The question is not
# counted as a mistake.


def _asked_about(sifted: Sifted, reply: Reply, rules: Rules, say: Say) -> State | Halt | None:
    """The next turn, in which the model is asked whether it means the calls in its text.

    Without a model call left, its text is the answer. None if there is nothing to ask: something else is wrong with
    the calls, or the calls are unreadable and text would not be an answer.
    """
    state, reading = sifted.state, sifted.reading
    words = welcomes_words(rules, state.ledger)
    wrong = [call for call in reading.calls if call.wrong]
    damaged = not reading.calls and not sifted.repeated and bool(reading.damage) and not reading.clear and words
    if not damaged and not (wrong and all(map(_is_among_words, wrong))):
        return None
    if state.ledger.budget.calls < 1:
        return _said(sifted, reply, reading.whole or reading.said.text, rules, say) if words else None
    tools = tuple(dict.fromkeys(call.name for call in wrong))
    text = say(state, Objection(wrong=MaybeMeant(tools=tools, words=words, damage=reading.damage)))
    spoken = _spoken(state, reading, reading.whole or reading.said.text)
    question = User(text=text, kind=Kind.RETRY_NUDGE, turn=state.ledger.turn)
    return state.note(asked_about=tools).say(spoken, question).to(Ready())


def _answering(sifted: Sifted, asked: tuple[str, ...]) -> Sifted:
    """The reading of the reply to that question, with calls of the tools asked about accepted (empty: of any tool).

    The question is withdrawn from the ledger, so it is not asked a second time.
    """
    meant = (
        replace(call, wrong=None) if _is_among_words(call) and (call.name in asked or not asked) else call
        for call in sifted.reading.calls
    )
    reading = replace(sifted.reading, calls=tuple(meant))
    return replace(sifted, reading=reading, state=sifted.state.note(asked_about=None))


def _is_among_words(call: Judged) -> bool:
    return isinstance(call.wrong, AmongWords)


def _first_said(sifted: Sifted) -> State:
    """The end of the run with the text that was asked about; with the latest one, if compaction has removed that."""
    state = sifted.state
    match state.history:
        case (*_, Assistant(text=text, calls=()), User(kind=Kind.RETRY_NUDGE)):
            return state.reshape(state.history[:-1]).to(Done(outcome=Said(text=text.strip())))
        case _:
            spoken = _spoken(state, sifted.reading, sifted.reading.whole or sifted.reading.said.text)
            return state.say(spoken).to(Done(outcome=Said(text=spoken.text.strip())))


def _asked_to_act(state: State, say: Say, rules: Rules) -> State:
    """The next turn, in which the model is asked whether there is something left to do.

    Its answer is left out of the history: a model that sees its own answer repeats it.
    """
    text = say(state, Objection(wrong=NothingDone(allowed=_allowed(state, rules))))
    asked = state.note(asked_to_act=state.ledger.turn)
    return asked.say(User(text=text, kind=Kind.RETRY_NUDGE, turn=state.ledger.turn)).to(Ready())


def _allowed(state: State, rules: Rules) -> tuple[str, ...]:
    return tuple(tool.name for tool in legal_tools(rules, state))


def _said(sifted: Sifted, reply: Reply, text: str, rules: Rules, say: Say) -> State | Halt:
    """The end of the run with this text, or a correction if it only echoes what forge has told the model."""
    state, reading = sifted.state, sifted.reading
    if "no_echoed_answers" not in rules.without and is_echo(text, state, [tool.name for tool in rules.tools]):
        return _nudged(sifted, reply, Echo(allowed=_allowed(state, rules)), rules, say)
    return state.say(_spoken(state, reading, text)).to(Done(outcome=Said(text=text.strip())))


def _spoken(state: State, reading: Reading, text: str) -> Assistant:
    return replace(reading.said, text=text, turn=state.ledger.turn)


def _nudged(sifted: Sifted, reply: Reply, wrong: NoCall, rules: Rules, say: Say) -> State | Halt:
    """The next turn, with a correction, after a reply without a usable call; a Halt past the maximum."""
    reading, objection = sifted.reading, Objection(wrong=wrong)
    state = replace(sifted.state, ledger=with_mistakes(sifted.state.ledger, [objection]))
    retries = state.ledger.retries
    if retries > rules.limits.max_retries_per_step:
        cut = reply.finish == "length"
        return BadReplies(attempts=retries, problem=render(objection), raw=reply.text, cut=cut)
    spoken = _spoken(state, reading, reading.whole if sifted.repeated else reading.said.text)
    nudge = User(text=say(state, objection), kind=mistake_of(wrong).kind, turn=state.ledger.turn)
    # Some servers refuse an empty assistant message.
    new = (spoken, nudge) if spoken.text.strip() else (nudge,)
    return state.say(*new).to(Ready())


def _bad_calls(sifted: Sifted, reply: Reply, calls: tuple[ToolCall, ...], rules: Rules, say: Say) -> State | Halt:
    """Refuse the batch. Arguments that do not fit count as tool errors, everything else as retries."""
    reading = sifted.reading
    wrong = [Objection(call=call, wrong=one.wrong) for call, one in zip(calls, reading.calls, strict=True) if one.wrong]
    misfit = next((objection for objection in wrong if isinstance(objection.wrong, BadArguments)), None)
    ledger = with_mistakes(sifted.state.ledger, [misfit or wrong[0]])
    state, cut = replace(sifted.state, ledger=ledger), reply.finish == "length"
    if misfit and ledger.tool_errors > rules.limits.max_tool_errors:
        error = _plainly(reading, calls, wrong, misfit)
        return ToolsFailing(tool=misfit.tool, attempts=ledger.tool_errors, error=error, cut=cut)
    if ledger.retries > rules.limits.max_retries_per_step:
        raw = "\n".join(f"{judged.name}({judged.arguments})" for judged in reading.calls)
        problem = _plainly(reading, calls, wrong, wrong[0])
        return BadReplies(attempts=ledger.retries, problem=problem, raw=raw, cut=cut)
    answers = _answers(reading, calls, wrong, partial(say, state))
    return state.say(*corrected_calls(reading, calls, answers, ledger.turn)).to(Ready())


def corrected_calls(
    reading: Reading, calls: tuple[ToolCall, ...], answers: tuple[Refused, ...], turn: int
) -> tuple[Message, ...]:
    """The calls with their answers, in a form that every server accepts back."""
    if all(map(_replayable, calls)):
        said = replace(reading.said, calls=calls, turn=turn)
        corrections = (
            Tool(call_id=call.id, name=call.name, text=answer.text, kind=answer.kind, turn=turn)
            for call, answer in zip(calls, answers, strict=True)
        )
        return (said, *corrections)
    quoted = "\n".join(f"{call.name}({call.arguments})" for call in calls)
    words = "\n".join(filter(None, (reading.said.text, quote(quoted, 2000))))
    said = replace(reading.said, text=words, turn=turn)
    return (said, User(text="\n".join(answer.text for answer in answers), kind=Kind.RETRY_NUDGE, turn=turn))


def _replayable(call: ToolCall) -> bool:
    """Whether a server takes the call back: llama.cpp answers 500 to a history with damaged arguments."""
    return valid.TOOL_NAME.fullmatch(call.name) is not None and valid.is_object(call.arguments)


def _answers(
    reading: Reading, calls: tuple[ToolCall, ...], wrong: list[Objection], say: Callable[[Objection], str]
) -> tuple[Refused, ...]:
    """The answer to each call. The last one also mentions calls that could not be read."""
    *others, last = refusals(wrong, calls, say, whole=True)
    return (*others, replace(last, text=f"{last.text} {reading.notice}") if reading.notice else last)


def _plainly(reading: Reading, calls: tuple[ToolCall, ...], wrong: list[Objection], which: Objection) -> str:
    """The answer to the call of that objection in forge's own words, for a Halt: `say` may be the user's."""
    place = next(place for place, call in enumerate(calls) if call == which.call)
    return _answers(reading, calls, wrong, render)[place].text
