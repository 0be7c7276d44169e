"""Histories and states for the benchmarks: long runs of calls and results."""

from stages.message import Assistant, History, System, Tool, ToolCall, User


def history(messages: int, result: int = 400) -> History:
    """A run of that many messages whose results have so many characters."""
    made: list[System | User | Assistant | Tool] = [System(text="Do the work."), User(text="Go.")]
    for turn in range(1, messages // 2):
        call = ToolCall(id=f"call_{turn:09d}", name="look", arguments='{"what":"something"}')
        made += [Assistant(calls=(call,), turn=turn), Tool(call_id=call.id, name="look", text="x" * result, turn=turn)]
    return tuple(made)
