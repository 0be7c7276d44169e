"""The shared bench's compaction suite with forge's compactors; `history` is the bench's own."""

from functools import partial

from history import spec

from stages import compact, fold, pipeline, serialize
from stages.compaction import ContextBudget, Meter, SlidingWindowCompact, TieredCompact
from stages.message import Assistant, History, Kind, Message, System, Tool, ToolCall, User, size
from stages.rules import Rules
from stages.state import Ready, State
from stages.wire.target import Target

Row = tuple[str, str, int | None, str | None, str | None, str | None]


def message(row: Row) -> Message:
    """One message of the bench as forge has it."""
    kind, text, step, call_id, tool, arguments = row
    turn = step or 0
    match kind:
        case "system":
            return System(text=text)
        case "user":
            return User(text=text)
        case "nudge":
            return User(text=text, kind=Kind.RETRY_NUDGE, turn=turn)
        case "call":
            call = ToolCall(id=call_id or "", name=tool or "", arguments=arguments or "{}")
            return Assistant(calls=(call,), turn=turn)
        case "result":
            return Tool(call_id=call_id or "", name=tool or "", text=text, turn=turn)
        case _:
            return Assistant(text=text, turn=turn)


def make(case: dict[str, int]) -> dict[str, object]:
    """By the name of what is measured: a call of it."""
    rows: list[Row] = spec(case["n"])
    history: History = tuple(map(message, rows))
    sizes = tuple(map(size, history))
    whole = sum(sizes) // 4

    def budget(share: float, low: float) -> ContextBudget:
        return ContextBudget(tokens=int(whole * share), low=low, meter=Meter(sizes=sizes))

    check = compact(TieredCompact(), ContextBudget(tokens=10**9))
    asked = pipeline(check, fold(), serialize(Rules(tools=()), Target(model="model")))(State(history=history)).unwrap()
    state = asked.to(Ready())
    tiered, sliding = TieredCompact(), SlidingWindowCompact()
    return {
        "forge_new: no compaction due (each turn's check)": partial(check, state),
        "forge_new: TieredCompact, truncation is enough": partial(tiered, history, budget(1.3, 0.75)),
        "forge_new: TieredCompact to half": partial(tiered, history, budget(1.0, 0.5)),
        "forge_new: TieredCompact to a tenth": partial(tiered, history, budget(0.2, 0.5)),
        "forge_new: SlidingWindowCompact": partial(sliding, history, budget(1.0, 0.5)),
    }
