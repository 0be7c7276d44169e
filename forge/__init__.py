"""Reliable tool calls from language models: define a workflow, run it, record it. The pure core is `stages`."""

import sys
import warnings
from typing import TYPE_CHECKING

if sys.orig_argv[1:3] == ["-m", "forge"]:  # as a program; a library leaves signals alone
    import forge_program

    forge_program.end_quietly()

from forge import _installation
from forge.errors import DefinitionError, ForgeError, ToolFailed, ToolResolutionError
from forge.masking import Redact
from forge.outcome import Finished, Halted
from forge.runtime.runs import follow, resume, resume_sync, run, run_or_raise, run_sync
from forge.tools.definition import tool
from forge.workflow.workflow import Context, Workflow
from stages._later import later
from stages.effect import Approved, Ask, Budget, Price, Rejected, Settled, Unanswered
from stages.options import OptionError
from stages.order import Change, Each, Use
from stages.rules import Calls, Limits
from stages.tool import Prerequisite

if TYPE_CHECKING:
    from forge.agent.agent import Agent
    from forge.interpreters.scripted import Scripted, call
    from forge.journal.replaying import replay
    from forge.runtime.conversation import Conversation
    from forge.runtime.event_stream import stream
    from forge.runtime.recovery import resume_journal
    from forge.tools.definition import ToolDef
    from stages.compaction import NoCompact, SlidingWindowCompact, TieredCompact
    from stages.confidence.measure import WhenUnsure
    from stages.saved import load, save
    from stages.view.summary import Summarize

__all__ = [
    "Agent",
    "Approved",
    "Ask",
    "Budget",
    "Calls",
    "Change",
    "Context",
    "Conversation",
    "DefinitionError",
    "Each",
    "Finished",
    "ForgeError",
    "Halted",
    "Limits",
    "NoCompact",
    "OptionError",
    "Prerequisite",
    "Price",
    "Redact",
    "Rejected",
    "Scripted",
    "Settled",
    "SlidingWindowCompact",
    "Summarize",
    "TieredCompact",
    "ToolDef",
    "ToolFailed",
    "ToolResolutionError",
    "Unanswered",
    "Use",
    "WhenUnsure",
    "Workflow",
    "call",
    "follow",
    "load",
    "replay",
    "resume",
    "resume_journal",
    "resume_sync",
    "run",
    "run_or_raise",
    "run_sync",
    "save",
    "stream",
    "tool",
]

if _installation.is_merged(__path__):
    warnings.warn(_installation.MERGED, stacklevel=2)

if not TYPE_CHECKING:  # a type checker goes on knowing which names there are
    __getattr__ = later(
        __name__,
        {
            "forge.agent.agent": ("Agent",),
            "forge.interpreters.scripted": ("Scripted", "call"),
            "forge.journal.replaying": ("replay",),
            "forge.runtime.conversation": ("Conversation",),
            "forge.runtime.event_stream": ("stream",),
            "forge.runtime.recovery": ("resume_journal",),
            "forge.tools.definition": ("ToolDef",),
            "stages.compaction": ("NoCompact", "SlidingWindowCompact", "TieredCompact"),
            "stages.confidence.measure": ("WhenUnsure",),
            "stages.saved": ("load", "save"),
            "stages.view.summary": ("Summarize",),
        },
    )

    def __dir__() -> list[str]:
        """The public names, those too that are not loaded yet, and what every module has."""
        return sorted((*__all__, *(name for name in globals() if name.startswith("__"))))
