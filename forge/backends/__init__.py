"""Backends: how to reach a model. What is special about a server is data, one TOML file each in `profiles/`."""

from typing import TYPE_CHECKING

from forge.connection import Backend, Connection, Setup
from stages._later import later

if TYPE_CHECKING:
    from forge.backends.anthropic import Anthropic
    from forge.backends.budget import BudgetMode, ResolvedBudget
    from forge.backends.profile import Profile
    from forge.backends.routing import Models, reached
    from forge.backends.server import Server, ServerOptions
    from forge.backends.servers.launch import Launch, startable
    from forge.backends.servers.server_manager import Local, ServerManager, setup_backend
    from forge.backends.specification import named

__all__ = [
    "Anthropic",
    "Backend",
    "BudgetMode",
    "Connection",
    "Launch",
    "Local",
    "Models",
    "Profile",
    "ResolvedBudget",
    "Server",
    "ServerManager",
    "ServerOptions",
    "Setup",
    "named",
    "reached",
    "setup_backend",
    "startable",
]

# Starting servers and downloading models needs packages that are slower to import than a client of a running server.
__getattr__ = later(
    __name__,
    {
        "forge.backends.anthropic": ("Anthropic",),
        "forge.backends.budget": ("BudgetMode", "ResolvedBudget"),
        "forge.backends.profile": ("Profile",),
        "forge.backends.routing": ("Models", "reached"),
        "forge.backends.server": ("ServerOptions", "Server"),
        "forge.backends.servers.launch": ("Launch", "startable"),
        "forge.backends.servers.server_manager": ("Local", "ServerManager", "setup_backend"),
        "forge.backends.specification": ("named",),
    },
)
