"""Required steps: no terminal call before every one of them has succeeded."""

from stages import nudges
from stages.halt import StepsSkipped
from stages.message import Kind, ToolCall
from stages.policy.rules import Rules, pending
from stages.state import State
from stages.verdict import Allow, Block, Correction, Guard, Stop, Verdict


def required_steps(rules: Rules) -> Guard:
    """Block a batch with a premature terminal call, more pressing each time, then stop (`StepsSkipped`)."""
    ends = frozenset(rules.terminal)

    def guard(state: State, calls: tuple[ToolCall, ...]) -> Verdict:
        early = [call for call in calls if call.name in ends]
        steps = pending(rules, state.ledger) if early else ()
        if not steps:
            return Allow()
        attempts = state.ledger.premature + 1
        if attempts > rules.max_premature:
            return Stop(halt=StepsSkipped(tool=early[0].name, attempts=attempts, pending=steps))
        tier = min(attempts, 3)
        return Block(
            kind=Kind.STEP_NUDGE,
            counter="premature",
            corrections=tuple(
                Correction(call_id=call.id, text=nudges.step(call.name, steps, tier))
                if call in early
                else Correction(
                    call_id=call.id, text=nudges.beside_a_skipped_step(call.name, early[0].name), beside=True
                )
                for call in calls
            ),
        )

    return guard
