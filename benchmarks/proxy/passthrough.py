"""The obvious pass-through: an ASGI application on uvicorn that asks with httpx. It looks into nothing.

`python -m benchmarks.proxy.passthrough BACKEND_PORT PORT`.
"""

import sys
from collections.abc import Awaitable, Callable
from typing import Any

import httpx
import uvicorn

Message = dict[str, Any]

client = httpx.AsyncClient(timeout=120, limits=httpx.Limits(max_connections=256, max_keepalive_connections=256))


async def app(
    scope: Message, receive: Callable[[], Awaitable[Message]], send: Callable[[Message], Awaitable[None]]
) -> None:
    if scope["type"] != "http":
        return
    body = b""
    while (message := await receive()).get("more_body"):
        body += message["body"]
    body += message.get("body", b"")
    url = f"http://127.0.0.1:{sys.argv[1]}{scope['path']}"
    asked = client.build_request(scope["method"], url, content=body, headers={"content-type": "application/json"})
    answer = await client.send(asked, stream=True)
    kept = [(name, value) for name, value in answer.headers.raw if name.lower() in {b"content-type", b"content-length"}]
    await send({"type": "http.response.start", "status": answer.status_code, "headers": kept})
    async for chunk in answer.aiter_raw():
        await send({"type": "http.response.body", "body": chunk, "more_body": True})
    await send({"type": "http.response.body", "body": b""})


if __name__ == "__main__":
    uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[2]), access_log=False, log_level="warning", lifespan="off")
