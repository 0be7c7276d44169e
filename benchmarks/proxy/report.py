"""What was measured, as a page of Markdown."""

from math import sqrt
from statistics import mean, stdev

from msgspec import Struct

from benchmarks.proxy.peers import LIMIT
from benchmarks.results_report import Machine

Costs = dict[str, dict[str, list[float]]]
"""Microseconds a request, by case and peer, a number a round."""


class Session(Struct, frozen=True):
    """Memory in MiB after some requests and after many."""

    few: int
    after_few: float
    many: int
    after_many: float


class Streams(Struct, frozen=True):
    """Streams at once: how many came whole, seconds to the last without a proxy and with it, MiB at the end."""

    whole: int
    direct: float
    through: float
    memory: float


class Measured(Struct, frozen=True):
    """All of it. `later`: by peer, milliseconds by which a first byte comes later; `loads`: before and after."""

    costs: Costs
    later: dict[str, float]
    session: Session
    streams: Streams
    loads: tuple[float, float]


_PAGE = """\
# What the proxy costs

Written by `make bench-proxy`. Processor time of the proxy's process a request, user and system, by the process's own \
clock: the mean of the rounds ± its standard error, and the multiple of `{limit}`, a bare `asyncio.Protocol` on both \
sides that decodes and encodes the bodies once and judges nothing. It is the mean because a request costs one of two \
prices, half as much where the processor's cache still holds the process, and a median picks one of them. The \
backend answers at once, one request is asked at a time, and in each round another proxy begins.

{machine}. Other work shared the machine: load {before:.1f} when it began, {after:.1f} when it ended.

{table}

First byte of a paced stream (a word every 4 ms), milliseconds after the same without a proxy: {later}.

Memory of forge's process: {session.after_few:.1f} MiB after {session.few:,} requests of the agent, \
{session.after_many:.1f} MiB after {session.many:,}.

{streams.whole} paced streams at once: the last ends after {streams.through:.2f} s ({streams.direct:.2f} s without a \
proxy); forge's process holds {streams.memory:.1f} MiB then.
"""


def report(machine: Machine, measured: Measured) -> str:
    """The page."""
    return _PAGE.format(
        limit=LIMIT,
        machine=f"{machine.cpu}, {machine.cores} cores, {machine.python}, {machine.date}",
        before=measured.loads[0],
        after=measured.loads[1],
        table=_table(measured.costs),
        later=", ".join(f"{name} {value:.1f}" for name, value in measured.later.items()),
        session=measured.session,
        streams=measured.streams,
    )


def _table(costs: Costs) -> str:
    cases = list(costs)
    head = [f"| µs a request | {' | '.join(cases)} |", f"|---|{'---:|' * len(cases)}"]
    names = next(iter(costs.values()))
    rows = (f"| {name} | {' | '.join(_cell(costs[case], name) for case in cases)} |" for name in names)
    return "\n".join([*head, *rows])


def _cell(case: dict[str, list[float]], name: str) -> str:
    times = case[name]
    error = stdev(times) / sqrt(len(times))
    return f"{mean(times):,.0f} ±{error:,.0f} ({mean(times) / mean(case[LIMIT]):.1f} x)"
