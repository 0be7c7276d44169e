"""Reliable tool calls from language models: define a workflow, run it, record it. The pure core is `stages`."""

import sys
import warnings
from typing import TYPE_CHECKING

if sys.orig_argv[1:3] == ["-m", "forge"]:  # as a program; a library leaves signals alone
    import forge_program

    forge_program.end_quietly()

from forge import _installation
from forge.errors import ForgeError, ToolFailed, ToolResolutionError
from forge.outcome import Finished, Halted
from forge.runtime.runs import resume, run, run_or_raise, run_sync
from forge.tools.definition import tool
from forge.workflow.workflow import Workflow
from stages._later import later

if TYPE_CHECKING:
    from forge.agent.agent import Agent
    from forge.journal.redaction import Redact as Redact
    from forge.journal.replaying import replay as replay
    from forge.journal.replaying import states as states
    from forge.runtime.conversation import Conversation
    from forge.runtime.event_stream import stream
    from forge.runtime.loop import drive as drive
    from forge.runtime.recovery import resume_journal as resume_journal
    from forge.runtime.runs import follow as follow
    from forge.tools.definition import IdempotencyKey as IdempotencyKey
    from forge.tools.definition import Tool as Tool
    from forge.tools.definition import ToolDef
    from forge.tools.definition import respond_tool as respond_tool
    from stages.compaction import NoCompact as NoCompact
    from stages.compaction import SlidingWindowCompact as SlidingWindowCompact
    from stages.compaction import TieredCompact as TieredCompact
    from stages.view.summary import Summarize as Summarize

__all__ = [
    "Agent",
    "Conversation",
    "Finished",
    "ForgeError",
    "Halted",
    "ToolDef",
    "ToolFailed",
    "ToolResolutionError",
    "Workflow",
    "resume",
    "run",
    "run_or_raise",
    "run_sync",
    "stream",
    "tool",
]

if _installation.is_merged(__path__):
    warnings.warn(_installation.MERGED, stacklevel=2)

if not TYPE_CHECKING:  # a type checker goes on knowing which names there are
    # Besides the public names that only some programs need: names that were here once, now exported by their rooms.
    __getattr__ = later(
        __name__,
        {
            "forge.agent.agent": ("Agent",),
            "forge.journal": ("Redact", "replay", "resume_journal", "states"),
            "forge.runtime": ("Conversation", "drive", "follow", "stream"),
            "forge.tools": ("IdempotencyKey", "Tool", "ToolDef", "respond_tool"),
            "stages.compaction": ("NoCompact", "SlidingWindowCompact", "TieredCompact"),
            "stages.view.summary": ("Summarize",),
        },
    )
