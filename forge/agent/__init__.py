"""Agents: conversations that act, remember and ask. Each message is a run of one workflow, by the same loop."""

from forge.agent.agent import Agent
from forge.agent.built_in import BuiltIn
from forge.agent.options import AgentOptions
from forge.agent.provider import Provider

__all__ = ["Agent", "AgentOptions", "BuiltIn", "Provider"]
