"""The proxy: an OpenAI and Anthropic endpoint in front of any backend; the calls that come back fit."""

from forge.errors import to_install
from forge.proxy.options import ProxyOptions
from forge.proxy.passage import Passage
from forge.proxy.policy import ModelPolicy, Policy, ToolPolicy

try:
    from forge.proxy.server import ProxyServer
except ModuleNotFoundError as error:
    if error.name not in {"uvicorn", "httptools"}:
        raise
    raise ImportError(f"the proxy is not installed here; {to_install('proxy')}") from None

__all__ = ["ModelPolicy", "Passage", "Policy", "ProxyOptions", "ProxyServer", "ToolPolicy"]
