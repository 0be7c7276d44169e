"""One model slot shared by many jobs."""

from forge.backends.slot.worker import SlotWorker, Statistics
from forge.errors import WorkerStopped

__all__ = ["SlotWorker", "Statistics", "WorkerStopped"]
