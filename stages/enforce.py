"""The stage `enforce`: ask the guards whether the calls may run."""

from returns.result import Failure, Result, Success

from stages.batch import noticed
from stages.halt import Halt
from stages.message import Assistant, Tool
from stages.pipeline import Stage, on
from stages.state import Attempt, Ready, State, Vetted
from stages.verdict import Allow, Block, Guard, Stop


def enforce(*guards: Guard) -> Stage:
    """Hand on a Vetted state that every guard allows; the first that does not decides what happens instead."""

    @on(Vetted)
    def stage(state: State, phase: Vetted) -> Result[State, Halt]:
        for guard in guards:
            match guard(state, phase.calls):
                case Stop(halt=halt):
                    return Failure(halt)
                case Block() as block:
                    return Success(_refused(state, phase, block))
                case Allow():
                    pass
                case other:
                    raise TypeError(f"a guard answered {other!r}; it must return Allow(), Block(…) or Stop(…)")
        return Success(state)

    return stage


def _refused(state: State, phase: Vetted, block: Block) -> State:
    if [c.call_id for c in block.corrections] != [call.id for call in phase.calls]:
        raise ValueError("a guard's Block must have one correction for each call of the batch, in their order")
    turn = state.ledger.turn
    names = {call.id: call.name for call in phase.calls}
    said = Assistant(text=phase.text, reasoning=phase.reasoning, sealed=phase.sealed, calls=phase.calls, turn=turn)
    answers = (
        Tool(call_id=c.call_id, name=names[c.call_id], text=c.text, kind=block.kind, turn=turn)
        for c in block.corrections
    )
    count: int = getattr(state.ledger, block.counter)
    refused = tuple(Attempt(name=call.name, arguments=call.arguments, turn=turn) for call in phase.calls)
    noted = {block.counter: count + 1, "attempts": state.ledger.attempts + refused}
    return state.say(said, *answers, *noticed(phase.notice, turn)).note(**noted).to(Ready())
