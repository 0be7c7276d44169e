"""Reliable tool calls from language models: run a workflow to a typed end. The pure core is `stages`."""

from forge.conversation import Conversation
from forge.errors import ForgeError, ToolFailed, ToolResolutionError
from forge.interpreters.redact import Redact
from forge.loop import Finished, Halted, drive
from forge.parameters import IdempotencyKey
from forge.recovery import resume_journal
from forge.replay import replay, states
from forge.run import follow, resume, run, run_or_raise, run_sync
from forge.tool import Tool, respond_tool, tool
from forge.tooldef import ToolDef
from forge.workflow import Workflow
from stages.compaction import NoCompact, SlidingWindowCompact, TieredCompact
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
    "tool",
]
