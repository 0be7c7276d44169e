"""Agents: conversations that act, remember and ask. Each message is a run of one workflow, in the same loop."""

from forge.agent.agent import Agent
from forge.agent.definition import BuiltIn
from forge.agent.files import file_tools
from forge.agent.provider import Provider
from forge.agent.several import Handled, NotHandedOver, agent_tool, hand_off_tool, history_brief, run_with_hand_offs

__all__ = [
    "Agent",
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
