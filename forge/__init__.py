"""Reliable tool calls from language models: run a workflow to a typed end. The pure core is `stages`."""

import sys
import warnings
from importlib import import_module
from typing import TYPE_CHECKING

if sys.orig_argv[1:3] == ["-m", "forge"]:  # as a program; a library leaves signals alone
    import forge_program

    forge_program.end_quietly()

from forge import installed
from forge.errors import ForgeError, ToolFailed, ToolResolutionError
from forge.loop import drive
from forge.outcome import Finished, Halted
from forge.parameters import IdempotencyKey

# A function of the name of its module has to be there before the module is imported by others.
from forge.replay import replay, states
from forge.run import follow, resume, run, run_or_raise, run_sync
from forge.tool import Tool, respond_tool, tool
from forge.workflow import Workflow
from stages.compaction import NoCompact, SlidingWindowCompact, TieredCompact

if TYPE_CHECKING:
    from forge.conversation import Conversation
    from forge.event_stream import stream
    from forge.interpreters.redact import Redact
    from forge.recovery import resume_journal
    from forge.tooldef import ToolDef
    from stages.summary import Summarize

__all__ = [
    "Conversation",
    "Finished",
    "ForgeError",
    "Halted",
    "IdempotencyKey",
    "NoCompact",
    "Redact",
    "SlidingWindowCompact",
    "Summarize",
    "TieredCompact",
    "Tool",
    "ToolDef",
    "ToolFailed",
    "ToolResolutionError",
    "Workflow",
    "drive",
    "follow",
    "replay",
    "respond_tool",
    "resume",
    "resume_journal",
    "run",
    "run_or_raise",
    "run_sync",
    "states",
    "stream",
    "tool",
]

if installed.is_merged(__path__):
    warnings.warn(installed.MERGED, stacklevel=2)

_LATER = {
    "Conversation": "forge.conversation",
    "Redact": "forge.interpreters.redact",
    "Summarize": "stages.summary",
    "ToolDef": "forge.tooldef",
    "resume_journal": "forge.recovery",
    "stream": "forge.event_stream",
}

if not TYPE_CHECKING:  # a type checker goes on knowing which names there are

    def __getattr__(name: str) -> object:
        """What only some programs need, when it is first asked for: the others start faster without."""
        if name not in _LATER:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(import_module(_LATER[name]), name)
