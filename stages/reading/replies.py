"""Reading a reply: which calls the model meant, wherever it put them, and what is wrong with each."""

import re
from collections.abc import Callable
from itertools import islice
from typing import assert_never

from msgspec import Struct
from msgspec.structs import replace

from stages import reading, rescue
from stages.effect import RawCall, Reply
from stages.message import Assistant
from stages.nudges import cut_beside, quote
from stages.objection import AmongWords, BadArguments, BesideDamage, Guessed, Unfit, UnknownTool, no_such_tool
from stages.reading.toolset import Toolset, toolset_of
from stages.reasoning import split_reasoning
from stages.repair.damaged_json import FoundJson
from stages.repair.json_text import json_at
from stages.rescue import Family, FoundCall, Rescued
from stages.rescue.markers import Grammars, grammars
from stages.rules import RepairLimits, Rules
from stages.schema import Fits, Misfit
from stages.tool import RESPOND
from stages.wire import prompted

_COMPARED = 200
"""Maximum number of tools that an unknown name is compared with."""


class Judged(Struct, frozen=True, kw_only=True):
    """One call, and what is wrong with it; nothing: it may run.

    `arguments` is what the model gave, or, for a call that may run, the canonical JSON of it. `written` is the text
    that it was found as; empty, where there was none.
    """

    name: str
    arguments: str
    written: str = ""
    origin: str = "native"
    repairs: tuple[str, ...] = ()
    wrong: Unfit | None = None


class Reading(Struct, frozen=True, kw_only=True):
    """A reply taken apart. Without `calls`, `damage` says what is wrong with one that was clearly meant.

    `said` is what it says besides its calls, `whole` its text including the calls found in it. `notice` tells the
    model, after the results of the calls, that another call could not be read.
    """

    said: Assistant
    whole: str = ""
    calls: tuple[Judged, ...] = ()
    damage: str | None = None
    notice: str = ""
    clear: bool = True
    """Whether there is no doubt that its calls, or the damaged one, are meant (`stages.reading.meant`)."""

    @property
    def alone(self) -> bool:
        """Whether the reply has no words besides its calls, except for the thought that is part of ReAct's format."""
        return _WORD.search(reading.words_beside(self.said.text, {call.origin for call in self.calls})) is None


_WORD = re.compile(r"\w")

ReplyRead = Callable[[Reply], Reading]


def reader(
    rules: Rules,
    *,
    in_text: bool,
    families: tuple[Family, ...] | Grammars,
    tools: Toolset | None = None,
    form: prompted.Form = prompted.JSON,
) -> ReplyRead:
    """A function from replies to readings; the tools' schemas are compiled here, unless `tools` has them.

    `in_text`: calls are asked for as text (`stages.wire.prompted`), so that very form is read even where
    rescue is off. `families` are the grammars that rescue knows; without any it is off.
    """
    judge = _Judge(tools=tools or toolset_of(rules.tools), limits=rules.calls.repair_limits)
    known = grammars(families) if rules.calls.rescue_enabled and families != () else None

    def read(reply: Reply) -> Reading:
        thought, text = split_reasoning(reply.text)
        reasoning = "\n\n".join(filter(None, (reply.reasoning, thought)))
        said = Assistant(text=text, reasoning=reasoning, sealed=reply.sealed)
        cut = reply.finish == "length"
        if reply.calls:
            calls = [judge.given(call, "native", cut=cut) for call in reply.calls]
            return Reading(said=said, calls=tuple(calls))
        if in_text and (asked := form.decode_calls(text)):
            calls = [judge.given(call, "prompted", cut=cut) for call in asked]
            return Reading(said=replace(said, text=""), whole=text, calls=tuple(calls))
        if in_text and (answer := form.decode_answer(text)) is not None:
            return Reading(said=replace(said, text=answer))
        if known is None:
            return Reading(said=said)
        found = rescue.rescuer(known(), most=rules.calls.max_calls_per_reply)(text, judge.tools.names)
        clear = not (found.calls or found.damage) or reading.is_clear(found, text)
        if not found.calls:
            damage = found.damage or judge.stranger(found.unknown)
            return Reading(said=said if damage else replace(said, text=found.rest), damage=damage, clear=clear)
        rescued, notice = judge.rescued(found, cut=cut, text=text)
        if not clear:
            rescued = tuple(map(judge.among_words, rescued))
        return Reading(said=replace(said, text=found.rest), whole=text, calls=rescued, notice=notice, clear=clear)

    return read


class _Judge(Struct, frozen=True, kw_only=True):
    """The call with what is wrong with it, wherever it was found."""

    tools: Toolset
    limits: RepairLimits

    def given(self, call: RawCall, origin: str, *, cut: bool) -> Judged:
        """A call in a field or a form that was requested."""
        if call.name in self.tools.specs:
            fits = self.tools.checks[call.name](call.arguments)
            if isinstance(fits, Fits):
                return Judged(name=call.name, arguments=fits.arguments, origin=origin, repairs=fits.repairs)
        meant = self.tools.names.find(call.name)
        if len(meant) != 1:
            return self.unknown(call, origin)
        renamed = () if meant[0] == call.name else (f"name {quote(call.name, 60)}",)
        found = FoundCall(name=meant[0], arguments=call.arguments, origin=origin, repairs=renamed)
        return self.checked(_repaired(found), cut=cut)

    def rescued(self, found: Rescued, *, cut: bool, text: str) -> tuple[tuple[Judged, ...], str]:
        """The calls found in the text, and the notice about one that could not be read."""
        end = len(text.rstrip())
        known = (
            replace(self.checked(call, cut=cut and call.span[1] >= end), written=text[slice(*call.span)])
            for call in found.calls
        )
        calls = (*known, *(self.unknown(RawCall(name=name, arguments="{}"), "text") for name in found.unknown))
        if found.damage is None:
            return calls, ""
        if not self.may_run_before(found) or any(judged.wrong for judged in calls):
            calls = tuple(judged if judged.wrong else replace(judged, wrong=BesideDamage()) for judged in calls)
        return calls, cut_beside(found.damage)

    def among_words(self, call: Judged) -> Judged:
        """The call, which may only be shown; one that only reads, or says something, does no harm."""
        if call.wrong or call.name == RESPOND or self.tools.specs[call.name].effect == "read":
            return call
        return replace(call, wrong=AmongWords())

    def may_run_before(self, found: Rescued) -> bool:
        """Whether the calls come before the damaged one and do not end the run: none may depend on it."""
        specs = self.tools.specs
        return all(call.span[1] <= found.damaged_at and specs[call.name].effect != "terminal" for call in found.calls)

    def unknown(self, call: RawCall, origin: str) -> Judged:
        """A call of a tool that does not exist."""
        wrong = UnknownTool(known=tuple(self.tools.specs), nearest=self.nearest(call.name))
        return Judged(name=call.name, arguments=call.arguments, origin=origin, wrong=wrong)

    def checked(self, call: FoundCall, *, cut: bool) -> Judged:
        """A call of a known tool, and whether it fits. `cut`: the reply was cut off there."""
        judged = Judged(name=call.name, arguments=call.arguments, origin=call.origin, repairs=call.repairs)
        # Leaving out the arguments of a tool that takes none is not a guess.
        guessed = call.cost - ("no_arguments" in call.repairs and not self.tools.parameters[call.name])
        # A reply cut off by its length limit may lack more than closers; a plain input ends where the reply ends.
        torn = cut and (guessed > 0 or "plain_input" in call.repairs)
        if torn or guessed > self.limits.of(self.tools.specs[call.name].effect):
            return replace(judged, wrong=Guessed(repairs=call.repairs))
        match self.tools.checks[call.name](call.arguments):
            case Fits(arguments=arguments, repairs=coerced):
                return replace(judged, arguments=arguments, repairs=call.repairs + coerced)
            case Misfit(problems=problems):
                return replace(judged, wrong=BadArguments(problems=problems, cut=cut))
            case other:
                assert_never(other)

    def stranger(self, unknown: tuple[str, ...]) -> str | None:
        """What is wrong with a text that calls only tools that do not exist."""
        return no_such_tool(unknown[0], self.nearest(unknown[0])) if unknown else None

    def nearest(self, name: str) -> str | None:
        """The most similar known name, among the first `_COMPARED`."""
        import difflib  # noqa: PLC0415 - only a mistake needs it

        close = difflib.get_close_matches(name[:80].lower(), [*islice(self.tools.specs, _COMPARED)], n=1)
        return close[0] if close else None


def _repaired(call: FoundCall) -> FoundCall:
    """The call with damaged arguments repaired, where possible; the cost says how much was guessed."""
    text = call.arguments.strip()
    found = json_at(text, 0) if text.startswith("{") else None
    if not isinstance(found, FoundJson) or text[found.end :].strip():
        return call
    return replace(call, arguments=found.text, repairs=call.repairs + found.repairs, cost=call.cost + found.cost)
