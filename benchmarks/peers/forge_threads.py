"""forge with tools that are plain functions: each call runs in a thread, so that none can hold up the loop."""

import workload
from forge_new import DIST, IMPORT, MODES, TERMINAL, Peer, define, run

__all__ = ["DIST", "IMPORT", "MODES", "TERMINAL", "run", "setup"]


def setup(base_url: str) -> None:
    Peer.url = base_url
    Peer.workflow = define([*workload.TOOLS.values(), workload.finish])
