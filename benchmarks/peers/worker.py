"""Runs one peer in its own interpreter: `python worker.py ADAPTER BASE_URL`, then a line of JSON for a line of JSON.

In: {"turns": 50, "mode": "http"} (or "stub"). Out: {"cpu": …} in microseconds for the whole run. An adapter is a
module with TERMINAL, `setup(base_url)` and `run(turns, model, mode)`, as in the shared bench.
"""

import gc
import importlib
import json
import sys
import time
import urllib.request

import workload


def measure(adapter: str, base_url: str) -> None:
    """Answer requests until standard input ends. What goes wrong ends the worker: its parent sees why."""
    peer = importlib.import_module(adapter)
    peer.setup(base_url)
    for line in sys.stdin:
        asked = json.loads(line)
        turns, mode = asked["turns"], asked["mode"]
        model = workload.model_name(turns, peer.TERMINAL)
        workload.Count.tools = 0
        gc.collect()
        began = time.process_time()
        peer.run(turns, model, mode)
        spent = time.process_time() - began
        if workload.Count.tools != turns - 1:
            raise RuntimeError(f"{adapter}: {workload.Count.tools} tools ran, not {turns - 1}")
        if mode == "http":
            check_requests(base_url, model, turns)
        sys.stdout.write(json.dumps({"cpu": spent * 1e6}) + "\n")
        sys.stdout.flush()


def check_requests(base_url: str, model: str, turns: int) -> None:
    """RuntimeError unless the server saw as many requests as there are turns."""
    origin = base_url.removesuffix("/v1")
    with urllib.request.urlopen(f"{origin}/stats?run={model}") as answer:  # noqa: S310 - our own server
        requests = json.load(answer)["requests"]
    if requests != turns:
        raise RuntimeError(f"the server saw {requests} requests, not {turns}")


if __name__ == "__main__":
    measure(sys.argv[1], sys.argv[2])
