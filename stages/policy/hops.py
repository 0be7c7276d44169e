"""Hops: whether the work on one message may be handed to another agent once more."""

from collections.abc import Collection, Sequence
from itertools import pairwise

MAX_HOPS = 5
"""Maximum number of hand-offs for one message."""


def refused_hop(path: Sequence[str], to: str, agents: Collection[str], most: int = MAX_HOPS) -> str:
    """Why the last agent of the path must not hand over to that one, as a sentence; empty: it may.

    `path` are the agents that had the message so far, in order. Nobody may hand it back and forth: a hand-over from
    one agent to another happens once for a message.
    """
    last, hops = path[-1], len(path) - 1
    if to == last:
        return f"{last} handed over to itself"
    if to not in agents:
        return f"{last} handed over to {to}, which is none of the agents: {', '.join(agents)}"
    if hops >= most:
        return f"the message was handed over {hops} times, the maximum"
    if (last, to) in pairwise(path):
        return f"{last} handed over to {to} for the second time"
    return ""
