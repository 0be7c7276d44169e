"""Own words: no call that ends the run with what forge has told the model as its text."""

import msgspec

from stages.message import ToolCall
from stages.objection import EchoedArgument, Objection
from stages.policy.rules import Rules
from stages.reading.echoes import is_echo
from stages.state import State
from stages.verdict import Guard, Verdict


def own_words(rules: Rules) -> Guard:
    """Object to such calls. Counts as a refusal; the budget bounds it."""
    names, ends = [tool.name for tool in rules.tools], frozenset(rules.terminal)

    def guard(state: State, calls: tuple[ToolCall, ...]) -> Verdict:
        return [
            Objection(call=call, wrong=EchoedArgument(argument=argument))
            for call in calls
            if call.name in ends and (argument := echoed(call, state))
        ]

    def echoed(call: ToolCall, state: State) -> str:
        values = msgspec.json.decode(call.arguments, type=dict[str, object])
        texts = ((name, value) for name, value in values.items() if isinstance(value, str))
        return next((name for name, text in texts if is_echo(text, state, names)), "")

    return guard
