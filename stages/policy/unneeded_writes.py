"""Unneeded writes: the tools that change something and have no part in what a workflow is about.

Required steps say what a workflow is about, and these tools are withheld. Without any, nothing says which of its writes
belong, so they are only not offered while nobody speaks of them (`stages.policy.escalation`).
Where no tool says that it reads, a tool that says nothing may be a look-up, so none is taken for a write.
"""

from collections.abc import Collection

from stages.policy.rules import Rules, needed_tools
from stages.tool import ToolSpec
from stages.view.recall import RECALL


def unneeded_writes(rules: Rules, named: Collection[str] = ()) -> tuple[str, ...]:
    """The tools that write, that nothing needs, and of which the workflow says nothing.

    It says something of a tool by naming it (`named`) or by a rule for it: prerequisites, order, values that must have
    been seen, calculations, approval. None without a tool that says that it reads.
    """
    if not any(tool.effect == "read" and tool != RECALL for tool in rules.tools):
        return ()
    ordered = (name for use in rules.order for name in use.names)
    ruled = (tool.name for tool in rules.tools if _has_a_rule(tool))
    sources = (name for tool in rules.tools for bound in tool.grounded for name in bound.sources)
    known = needed_tools(rules, (*rules.required, *rules.terminal, *named, *ordered, *ruled, *sources))
    return tuple(tool.name for tool in rules.tools if tool.effect == "write" and tool.name not in known)


def _has_a_rule(tool: ToolSpec) -> bool:
    return bool(tool.prerequisites or tool.grounded or tool.calculated or tool.approval)
