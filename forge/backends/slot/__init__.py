"""A queue in front of a server with one slot: jobs by priority, preemptible ones make room."""

from forge.backends.slot.worker import SlotWorker, Statistics
from forge.errors import WorkerStopped

__all__ = ["SlotWorker", "Statistics", "WorkerStopped"]
