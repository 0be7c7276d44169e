"""A proxy that holds any client to rules: this client asks for a report, and gets the look-up first.

Run it:  pip install '.[proxy,local]' and then  python examples/proxy_policy.py [http://127.0.0.1:8080]
The same on the command line, with the table below in a file:  forge proxy --backend local --policy policy.toml
"""

import asyncio
import sys
from typing import Any

import httpx

from forge.connection import AnyBackend
from forge.proxy import ProxyOptions, ProxyServer
from forge.proxy.policy_file import policy_from_toml

POLICY = """
required_steps = ["get_order"]
terminal_tool = "send_report"
order = [{ tool = "send_report", at_most = 1 }]

[tools.send_report]
grounded = ["total"]          # a number that the user or a result has named
"""

TOOLS = [
    {"type": "function", "function": {"name": name, "parameters": {"type": "object", "properties": fields}}}
    for name, fields in {
        "get_order": {"order_id": {"type": "string"}},
        "send_report": {"total": {"type": "number"}},
    }.items()
]
RESULTS = {"get_order": '{"total": 129.9}', "send_report": "Report sent."}


async def main(backend: AnyBackend) -> list[str]:
    """The calls that an ordinary client gets, and what it is told at the end."""
    messages: list[dict[str, Any]] = [{"role": "user", "content": "Send a report on order A-17."}]
    got: list[str] = []
    options = ProxyOptions(port=0, policy=policy_from_toml(POLICY))
    async with ProxyServer(backend, options) as proxy, httpx.AsyncClient(base_url=proxy.url, timeout=300) as client:
        while len(got) < 4:
            asked = {"model": "m", "messages": messages, "tools": TOOLS}
            answer = await client.post("/v1/chat/completions", json=asked)
            said = answer.raise_for_status().json()["choices"][0]["message"]
            messages.append(said)
            calls = said.get("tool_calls") or []
            for call in calls:
                got.append(f"{call['function']['name']} {call['function']['arguments']}")
                result = RESULTS[call["function"]["name"]]
                messages.append({"role": "tool", "tool_call_id": call["id"], "content": result})
            if not calls:
                return [*got, said["content"]]
    return got


if __name__ == "__main__":
    print("\n".join(asyncio.run(main(sys.argv[1] if sys.argv[1:] else "local"))))
