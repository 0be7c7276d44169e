"""Pruning: a conversation shortened to a number of tokens, calls with their results."""

from stages.compaction.budget import ContextBudget
from stages.compaction.conversation import pruned_conversation
from stages.halt import CannotFit
from stages.state import State
from stages.tokens import Report


def pruned(state: State, max_tokens: int) -> State | CannotFit:
    """The state with a history of at most `max_tokens`; CannotFit where what must stay takes more.

    Old results are cut first, then the oldest exchanges go. The system prompt, the last request of the user and pinned
    messages stay. Tokens are estimated at the rate that the session's model was last seen to take.
    """
    budget = ContextBudget(tokens=max_tokens, threshold=1, low=1).metered(state.ledger.tokens_per_character, Report())
    if budget.tokens_of(budget.count(state.history)) <= max_tokens:
        return state
    shorter = pruned_conversation(state.history, budget)
    return shorter if isinstance(shorter, CannotFit) else state.reshape(shorter.history)
