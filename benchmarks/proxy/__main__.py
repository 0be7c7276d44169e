"""`python -m benchmarks.proxy`: measure, and write benchmarks/PROXY.md. Linux only: by the clocks of processes."""

import asyncio
import os
import sys
from pathlib import Path
from statistics import median

from benchmarks.proxy.bodies import bodies
from benchmarks.proxy.loader import load
from benchmarks.proxy.peers import FORGE, Peer, running
from benchmarks.proxy.report import Costs, Measured, Session, Streams, report
from benchmarks.results import machine

ROUNDS, REQUESTS = 30, 40
PACED_ROUNDS = 5

STREAMS = 200
"""At once."""

AT_ONCE, FEW, MANY = 16, 1_000, 10_000
"""The requests after which forge's memory is looked at, and how many of them at a time."""


async def costs_of(peers: dict[str, Peer]) -> Costs:
    """Microseconds of processor time a request, by case and peer: in each round another peer begins."""
    asked = {case: body for case, body in bodies().items() if case != "paced"}
    costs: Costs = {case: {name: [] for name in peers} for case in asked}
    for body in asked.values():
        for peer in peers.values():
            await load(peer.port, body, 50)
    for number in range(ROUNDS):
        for case, body in asked.items():
            for peer in _from(peers, number):
                before = peer.cpu()
                await load(peer.port, body, REQUESTS)
                costs[case][peer.name].append((peer.cpu() - before) / REQUESTS * 1e6)
        sys.stderr.write(f"round {number + 1} of {ROUNDS}, load {os.getloadavg()[0]:.1f}\n")
    return costs


async def first_bytes(backend: Peer, peers: dict[str, Peer]) -> dict[str, float]:
    """Milliseconds by which the first byte of a paced stream comes later than without a proxy."""
    body, times = bodies()["paced"], {name: list[float]() for name in ("direct", *peers)}
    for number in range(PACED_ROUNDS):
        for peer in _from({"direct": backend, **peers}, number):
            name = "direct" if peer is backend else peer.name
            times[name] += (await load(peer.port, body, 8)).first
    direct = median(times.pop("direct"))
    return {name: (median(each) - direct) * 1e3 for name, each in times.items()}


async def memory(forge: Peer) -> Session:
    """What forge holds after some requests, and after many."""
    body = bodies()["agent"]
    await load(forge.port, body, FEW, AT_ONCE)
    few = forge.memory()
    await load(forge.port, body, MANY - FEW, AT_ONCE)
    return Session(FEW, few, MANY, forge.memory())


async def streams(backend: Peer, forge: Peer) -> Streams:
    """So many paced streams at once, without a proxy and through forge."""
    body = bodies()["paced"]
    direct, through = await load(backend.port, body, STREAMS, STREAMS), await load(forge.port, body, STREAMS, STREAMS)
    return Streams(len(through.whole), max(direct.whole), max(through.whole), forge.memory())


def _from(peers: dict[str, Peer], number: int) -> list[Peer]:
    all_of_them = list(peers.values())
    at = number % len(all_of_them)
    return all_of_them[at:] + all_of_them[:at]


async def main() -> None:
    """Some three minutes."""
    with running() as (backend, peers):
        before = os.getloadavg()[0]
        costs = await costs_of(peers)
        later = await first_bytes(backend, peers)
        held = await memory(peers[FORGE])
        many = await streams(backend, peers[FORGE])
    text = report(machine(), Measured(costs, later, held, many, (before, os.getloadavg()[0])))
    (Path(__file__).parents[1] / "PROXY.md").write_text(text, encoding="utf-8")
    sys.stdout.write(text)


if __name__ == "__main__":
    asyncio.run(main())
