"""The proxy: an OpenAI and Anthropic endpoint in front of any backend; the calls that come back fit."""

from typing import TYPE_CHECKING

from forge.errors import later_with
from forge.proxy.options import ProxyOptions
from forge.proxy.passage import Passage
from forge.proxy.policy import ModelPolicy, Policy, ToolPolicy

if TYPE_CHECKING:
    from forge.proxy.server import ProxyServer
else:
    __getattr__ = later_with("proxy", __name__, {"forge.proxy.server": ("ProxyServer",)})

__all__ = ["ModelPolicy", "Passage", "Policy", "ProxyOptions", "ProxyServer", "ToolPolicy"]
