"""The stage `execute`: have the calls run, group by group, then write down what came of them."""

from returns.result import Failure, Result, Success

from stages.batch import digest, finished, messages, next_group, successes, waiting, without_terminal
from stages.effect import Ask, Execute, Failed
from stages.halt import Halt, ToolsFailing
from stages.pipeline import Stage, on, pipeline
from stages.recall import recalled
from stages.rules import Rules
from stages.state import Awaiting, Batch, Completed, Done, Executed, Ready, State, Vetted


def execute(rules: Rules) -> Stage:
    """Turn a Vetted state into one that awaits its calls, and one whose calls are back into the next turn.

    Ends in Awaiting, Ready, or Done when a terminal tool succeeded. Halts with `ToolsFailing`.
    """

    @on(Vetted)
    def begin(state: State, phase: Vetted) -> Result[State, Halt]:
        return Success(state.to(Executed(batch=Batch(calls=phase.calls, text=phase.text, reasoning=phase.reasoning))))

    @on(Executed)
    def go_on(state: State, phase: Executed) -> Result[State, Halt]:
        batch = without_terminal(recalled(state, phase.batch, rules), rules)
        if waiting(batch):
            return Success(state.to(_next(batch, rules)))
        return _settled(state.say(*messages(batch, state.ledger.turn)), batch, rules)

    return pipeline(begin, go_on)


def _next(batch: Batch, rules: Rules) -> Awaiting:
    group = next_group(batch, rules)
    for call in group:
        tool = rules.tool(call.name)
        if tool and tool.approval and call.id not in batch.approved:
            return Awaiting(effect=Ask(call=call, digest=digest(call)), batch=batch)
    return Awaiting(effect=Execute(calls=group), batch=batch)


def _settled(state: State, batch: Batch, rules: Rules) -> Result[State, Halt]:
    """Count what went wrong, remember what succeeded, and end the run if a terminal tool did."""
    calls = {call.id: call for call in batch.calls}
    wrong = [r for r in batch.results if isinstance(r, Failed) and r.counted]
    errors = state.ledger.tool_errors + 1 if wrong else 0
    state = state.note(successes=state.ledger.successes + successes(batch), tool_errors=errors)
    if ended := finished(batch, rules):
        tool, result = ended
        return Success(state.to(Done(outcome=result.ends or Completed(tool=tool, value=result.value))))
    if errors > rules.max_tool_errors:
        last = wrong[-1]
        return Failure(
            ToolsFailing(tool=calls[last.call_id].name, attempts=errors, error=f"{last.error}: {last.message}")
        )
    clean = state if wrong else state.note(premature=0, prerequisite_violations=0)
    return Success(clean.to(Ready()))
