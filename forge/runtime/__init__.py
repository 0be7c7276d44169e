"""Runtime: run a workflow, resume it, watch it."""

from typing import TYPE_CHECKING

from stages._later import later

if TYPE_CHECKING:
    from forge.runtime.conversation import Conversation
    from forge.runtime.event_stream import stream
    from forge.runtime.loop import drive
    from forge.runtime.observers import Observer
    from forge.runtime.runs import follow, resume, run, run_or_raise, run_sync
    from forge.runtime.watcher import OnChunk
    from forge.runtime.watching import Watching

__all__ = [
    "Conversation",
    "Observer",
    "OnChunk",
    "Watching",
    "drive",
    "follow",
    "resume",
    "run",
    "run_or_raise",
    "run_sync",
    "stream",
]

if not TYPE_CHECKING:
    __getattr__ = later(
        __name__,
        {
            "forge.runtime.conversation": ("Conversation",),
            "forge.runtime.event_stream": ("stream",),
            "forge.runtime.loop": ("drive",),
            "forge.runtime.observers": ("Observer",),
            "forge.runtime.runs": ("follow", "resume", "run", "run_or_raise", "run_sync"),
            "forge.runtime.watcher": ("OnChunk",),
            "forge.runtime.watching": ("Watching",),
        },
    )
