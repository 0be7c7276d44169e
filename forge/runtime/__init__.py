"""Runtime: run a workflow, resume it, watch it."""

from typing import TYPE_CHECKING

from stages._later import later

if TYPE_CHECKING:
    from forge.runtime.callbacks import OnChunk
    from forge.runtime.conversation import Conversation
    from forge.runtime.emitter import OnEvent
    from forge.runtime.event_stream import stream
    from forge.runtime.loop import drive
    from forge.runtime.runs import follow, resume, resume_sync, run, run_or_raise, run_sync
    from forge.runtime.watching import Watching

__all__ = [
    "Conversation",
    "OnChunk",
    "OnEvent",
    "Watching",
    "drive",
    "follow",
    "resume",
    "resume_sync",
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
            "forge.runtime.emitter": ("OnEvent",),
            "forge.runtime.loop": ("drive",),
            "forge.runtime.runs": ("follow", "resume", "resume_sync", "run", "run_or_raise", "run_sync"),
            "forge.runtime.callbacks": ("OnChunk",),
            "forge.runtime.watching": ("Watching",),
        },
    )
