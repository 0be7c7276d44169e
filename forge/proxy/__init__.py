"""The proxy: an OpenAI and Anthropic endpoint in front of any backend; the calls that come back fit."""

from forge.proxy.options import ProxyOptions
from forge.proxy.passage import Passage
from forge.proxy.policy import ModelPolicy, Policy, ToolPolicy

try:
    from forge.proxy.server import ProxyServer
except ModuleNotFoundError as error:
    if error.name not in {"uvicorn", "httptools"}:
        raise
    raise ImportError("the proxy is not installed here; run: pip install 'forge-toolcalls[proxy]'") from None

__all__ = ["ModelPolicy", "Passage", "Policy", "ProxyOptions", "ProxyServer", "ToolPolicy"]
