"""A compactor of your own is a function: it is timed against forge's, and then keeps a run short.

Run it:  python examples/own_compactor.py [http://127.0.0.1:8080]
"""

import sys
import timeit

from msgspec.structs import replace

from forge import Context, Limits, SlidingWindowCompact, TieredCompact, Workflow, run_sync, tool
from forge.connection import AnyBackend
from stages.compaction import Compacted, CompactionResult, Compactor, ContextBudget, estimate
from stages.halt import CannotFit
from stages.message import Assistant, History, Kind, Tool, ToolCall, User


def last_results(history: History, budget: ContextBudget) -> CompactionResult:
    """Empty all long results but the last two, once the prompt has grown to the trigger."""
    if estimate(history, budget) < budget.trigger:
        return Compacted(history=history, phase=0)
    results = [one for one in history if isinstance(one, Tool) and one.kind is Kind.TOOL_RESULT]
    old = {one.call_id for one in results[:-2] if len(one.text) > 200 and not one.pinned}
    kept = tuple(replace(one, text="[cut]") if isinstance(one, Tool) and one.call_id in old else one for one in history)
    if (tokens := estimate(kept, budget)) > budget.tokens:
        return CannotFit(tokens=tokens, budget=budget.tokens)
    return Compacted(history=kept, phase=1 if old else 0)


def milliseconds(compactor: Compactor, calls: int = 2000) -> float:
    """How long it takes to compact a history of so many calls: the best of five."""
    history: History = (User(text="Go."),)
    for n in range(calls):
        made = ToolCall(id=f"call_{n:09}", name="read", arguments="{}")
        history += (Assistant(calls=(made,), turn=n), Tool(call_id=made.id, name="read", text="x" * 300, turn=n))
    budget = ContextBudget(tokens=200_000)
    return 1000 * min(timeit.repeat(lambda: compactor(history, budget), number=1, repeat=5))


@tool(effect="read")
def read_page(page: int) -> str:
    """Read a page of the manual; the answer names the next page."""
    return f"Page {page}. {'Many words. ' * 40}Read page {page + 1} next." if page < 5 else "The code is 4711."


def main(backend: AnyBackend) -> object:
    """A run that compacts at a fifth of the context, so that five pages are enough to see it."""
    context = Context(compactor=last_results, compact_at=0.2, compact_to=0.1)
    workflow = Workflow(
        "pages", tools=[read_page], context=context, on_text="respond", limits=Limits(max_iterations=12)
    )
    ended = run_sync(workflow, "Read page 1 and go on until you find the code. What is it?", backend=backend).unwrap()
    return ended.value, f"{len(ended.state.ledger.compactions)} compactions"


if __name__ == "__main__":
    for each in (last_results, TieredCompact(), SlidingWindowCompact()):
        print(f"{milliseconds(each):8.2f} ms  {getattr(each, '__name__', each)}")
    print(main(sys.argv[1] if sys.argv[1:] else "local"))
