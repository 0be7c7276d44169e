"""Which levels of escalation a backend supports; the others are skipped."""

from collections.abc import Mapping

from msgspec.structs import replace
from returns.result import Result

from stages.halt import Halt
from stages.pipeline import Stage
from stages.policy.escalation import changed_mode
from stages.policy.levels import Escalation, EscalationLevel, TextMode
from stages.policy.rules import Rules
from stages.policy.simpler_tools import simpler_tool
from stages.state import State
from stages.wire.sampling import Sampling
from stages.wire.wires import Wire, demandable


def with_mode_changes(rules: Rules, stage: Stage, others: Mapping[TextMode, Stage]) -> Stage:
    """The stage, or another in its place once escalation has changed the mode."""

    def chosen(state: State) -> Result[State, Halt]:
        mode = changed_mode(rules, state)
        return (stage if mode is None else others[mode])(state)

    return chosen


def possible_escalation(rules: Rules, mode: str, wire: Wire, sampling: Sampling) -> Escalation:
    """The workflow's escalation without the levels that this backend does not support.

    `mode` is the one in which the run begins; a level that changes it counts for the levels after it.
    """
    demands, constrains = demandable(wire, sampling), wire.dialect.constrain != "none"
    found: list[EscalationLevel] = []
    for level in rules.escalation.levels:
        if _can(level, rules, mode, demands=demands, constrains=constrains):
            found.append(level)
            mode = level if level in ("constrained", "prompted") else mode
    return replace(rules.escalation, levels=tuple(found))


def _can(level: EscalationLevel, rules: Rules, mode: str, *, demands: bool, constrains: bool) -> bool:
    match level:
        case "call":
            return mode == "native" and demands
        case "simple":
            return mode == "constrained" and any(simpler_tool(tool) is not tool for tool in rules.tools)
        case "constrained":
            return mode != level and constrains
        case "prompted":
            return mode != level
        case _:
            return True
