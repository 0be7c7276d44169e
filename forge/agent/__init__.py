"""Agents: conversations that act, remember and ask. Each message is a run of one workflow, by the same loop."""

from forge.agent.agent import Agent
from forge.agent.as_tool import agent_tool
from forge.agent.built_in import BuiltIn
from forge.agent.files import file_tools
from forge.agent.hand_offs import Handled, NotHandedOver, hand_off_tool, history_brief, run_with_hand_offs
from forge.agent.options import AgentOptions
from forge.agent.provider import Provider

__all__ = [
    "Agent",
    "AgentOptions",
    "BuiltIn",
    "Handled",
    "NotHandedOver",
    "Provider",
    "agent_tool",
    "file_tools",
    "hand_off_tool",
    "history_brief",
    "run_with_hand_offs",
]
