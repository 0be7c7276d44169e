"""Reliable tool calls from language models: run a workflow to a typed end. The pure core is `stages`."""

import sys
import warnings
from importlib import import_module
from typing import TYPE_CHECKING

if sys.orig_argv[1:3] == ["-m", "forge"]:  # as a program; a library leaves signals alone
    import forge_program

    forge_program.end_quietly()

from forge.errors import ForgeError, ToolFailed, ToolResolutionError

# A function of the name of its module has to be there before the module is imported by others.
from forge.journal.replaying import replay, states
from forge.outcome import Finished, Halted
from forge.runtime import installation as installed
from forge.runtime.loop import drive
from forge.runtime.runs import follow, resume, run, run_or_raise, run_sync
from forge.tools.decorator import Tool, respond_tool, tool
from forge.tools.parameters import IdempotencyKey
from forge.workflow.workflow import Workflow
from stages.compaction import NoCompact, SlidingWindowCompact, TieredCompact

if TYPE_CHECKING:
    from forge.journal.redaction import Redact
    from forge.runtime.conversation import Conversation
    from forge.runtime.event_stream import stream
    from forge.runtime.recovery import resume_journal
    from forge.tools.definition import ToolDef
    from stages.view.summary import Summarize

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
    "Conversation": "forge.runtime.conversation",
    "Redact": "forge.journal.redaction",
    "Summarize": "stages.view.summary",
    "ToolDef": "forge.tools.definition",
    "resume_journal": "forge.runtime.recovery",
    "stream": "forge.runtime.event_stream",
}

if not TYPE_CHECKING:  # a type checker goes on knowing which names there are

    def __getattr__(name: str) -> object:
        """What only some programs need, when it is first asked for: the others start faster without."""
        if name not in _LATER:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(import_module(_LATER[name]), name)
