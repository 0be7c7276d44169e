"""Rungs: which rungs of a ladder a backend can climb; the others are skipped."""

from collections.abc import Mapping

from msgspec.structs import replace
from returns.result import Result

from stages.halt import Halt
from stages.pipeline import Stage
from stages.policy.escalation import changed_mode
from stages.policy.rules import Ladder, Rules, Rung, TextMode
from stages.policy.simpler_tools import simpler_tool
from stages.state import State
from stages.wire.sampling import Sampling
from stages.wire.wires import Wire, demandable


def with_mode_changes(rules: Rules, stage: Stage, others: Mapping[TextMode, Stage]) -> Stage:
    """The stage, and another instead of it once the ladder has changed the mode."""

    def chosen(state: State) -> Result[State, Halt]:
        mode = changed_mode(rules, state)
        return (stage if mode is None else others[mode])(state)

    return chosen


def possible_escalation(rules: Rules, mode: str, wire: Wire, sampling: Sampling) -> Ladder:
    """The workflow's ladder without what cannot be done there; a rung that changes the mode decides for those after it.

    `mode` is the one in which the run begins.
    """
    demands, constrains = demandable(wire, sampling), wire.dialect.constrain != "none"
    found: list[Rung] = []
    for rung in rules.ladder.rungs:
        if _can(rung, rules, mode, demands=demands, constrains=constrains):
            found.append(rung)
            mode = rung if rung in ("constrained", "prompted") else mode
    return replace(rules.ladder, rungs=tuple(found))


def _can(rung: Rung, rules: Rules, mode: str, *, demands: bool, constrains: bool) -> bool:
    match rung:
        case "call":
            return mode == "native" and demands
        case "simple":
            return mode == "constrained" and any(simpler_tool(tool) is not tool for tool in rules.tools)
        case "constrained":
            # A constraint allows nothing but calls, so words must not be welcome.
            return mode != rung and constrains and rules.on_text != "accept"
        case "prompted":
            return mode != rung
        case _:
            return True
