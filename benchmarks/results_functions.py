"""Bare functions measured: the compactors, the check when nothing is due, and what an import costs. CPU, not wall."""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from functools import partial
from statistics import median

from msgspec import Struct
from msgspec.structs import replace

from benchmarks.histories import history
from benchmarks.results_loop import PEERS, environment, interpreters
from stages import compact, fold, pipeline, serialize
from stages.compaction import Compacted, Compactor, ContextBudget, Meter, SlidingWindowCompact, TieredCompact
from stages.message import History, size
from stages.rules import Rules
from stages.state import Ready, State
from stages.wire.target import Target

SIZES = (100, 1_000, 10_000, 100_000)
CHECKED = (10, 100, 1_000, 10_000)
ROUNDS = 9

CASES: tuple[tuple[Compactor, float, float], ...] = (
    # A compactor, the budget as a share of what the history takes, and the low-water mark that it aims at.
    (TieredCompact(), 1.3, 0.75),
    (TieredCompact(), 1.0, 0.5),
    (TieredCompact(), 0.2, 0.5),
    (SlidingWindowCompact(), 1.0, 0.5),
)


class Functions(Struct, frozen=True, kw_only=True):
    """`compaction`: by case, million messages a second for each size. `check`: microseconds for each size.

    `one_pass` is the floor of the first: the sum of all lengths, in Python. `imports`: CPU milliseconds over bare
    Python, by peer; `floor` is asyncio and msgspec alone, `forge_http` forge with its client.
    """

    compaction: dict[str, dict[int, float]]
    one_pass: dict[int, float]
    check: dict[int, float]
    imports: dict[str, float]


def functions() -> Functions:
    """All of it."""
    long = {messages: history(messages) for messages in SIZES}
    return Functions(
        compaction=dict(throughput(long, *case) for case in CASES),
        one_pass={messages: messages / cpu(partial(lengths, whole)) for messages, whole in long.items()},
        check={messages: check(messages) for messages in CHECKED},
        imports=imports(),
    )


def lengths(long: History) -> int:
    """The floor: one pass over the history in Python."""
    return sum([len(message.text) for message in long])


def throughput(
    long: Mapping[int, History], compactor: Compactor, share: float, low: float
) -> tuple[str, dict[int, float]]:
    """The name of the case, with the phase that it comes to, and million messages a second for each size."""
    speeds = {}
    for messages, whole in long.items():
        sizes = tuple(map(size, whole))
        budget = ContextBudget(tokens=int(sum(sizes) * 0.25 * share), low=low, meter=Meter(sizes=sizes))
        speeds[messages] = messages / cpu(partial(compactor, whole, budget))
    reached = compactor(whole, budget)
    phase = f"phase {reached.phase}" if isinstance(reached, Compacted) else "cannot fit"
    return f"{type(compactor).__name__}, {phase}", speeds


def check(messages: int) -> float:
    """Microseconds of the stage `compact` when nothing is due, in a run that has sent a request before."""
    stage = compact(TieredCompact(), ContextBudget(tokens=10**9))
    asked = pipeline(stage, fold(), serialize(Rules(tools=()), Target(model="model")))(State(history=history(messages)))
    state = replace(asked.unwrap(), phase=Ready())
    return cpu(partial(stage, state))


def imports() -> dict[str, float]:
    """CPU milliseconds of importing each peer in a fresh interpreter, less those of the interpreter."""
    pythons = interpreters()
    # httpx imports its command line where the packages for it happen to be there, as those of the extra `dev` are.
    plain = "import sys; sys.modules['click'] = None; import"
    statements = {
        "bare": (sys.executable, "pass"),
        "floor": (sys.executable, f"{plain} asyncio, msgspec"),
        "raw_msgspec": (sys.executable, f"{plain} httpx, msgspec"),
        "forge_new": (sys.executable, f"{plain} forge"),
        "forge_http": (sys.executable, f"{plain} forge, forge.interpreters.http"),
    }
    if "forge_guardrails" in pythons:
        statements["forge_guardrails"] = (pythons["forge_guardrails"], f"{plain} forge")
    samples: dict[str, list[float]] = {name: [] for name in statements}
    for _ in range(ROUNDS + 1):
        for name, command in statements.items():
            samples[name].append(started(*command))
    # The first round wrote the bytecode.
    spent = {name: median(values[1:]) for name, values in samples.items()}
    return {name: spent[name] - spent["bare"] for name in spent if name != "bare"}


def started(python: str, statement: str) -> float:
    """CPU milliseconds of an interpreter that does this and ends."""
    with subprocess.Popen([python, "-c", statement], cwd=PEERS, env=environment()) as process:  # noqa: S603
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"{statement!r} fails in {python}; see above")
    return (usage.ru_utime + usage.ru_stime) * 1000


def cpu(function: Callable[[], object]) -> float:
    """CPU microseconds a call: the median of rounds of at least 20 ms."""
    count = _calls(function)
    return median(_spent(function, count) / count for _ in range(ROUNDS))


def _calls(function: Callable[[], object]) -> int:
    """So many that they take 20 ms."""
    count = 1
    while _spent(function, count) < 20_000:
        count *= 2
    return count


def _spent(function: Callable[[], object], count: int) -> float:
    began = time.process_time()
    for _ in range(count):
        function()
    return (time.process_time() - began) * 1e6
