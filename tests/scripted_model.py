"""A model server in this loop: answers each post with the next of a script, and tells what it was asked."""

import asyncio
import ssl
from typing import Any, Self

import msgspec
from msgspec import Struct


class Line(Struct, frozen=True, kw_only=True):
    """An answer: its parts are sent one by one, each after the gate of its number opens, if there is one."""

    parts: tuple[bytes, ...]
    status: int = 200
    headers: tuple[tuple[str, str], ...] = (("content-type", "application/json"),)
    gates: dict[int, asyncio.Event] = {}
    hangs: bool = False
    breaks: bool = False


def whole(body: object, status: int = 200, **headers: str) -> Line:
    """A whole answer."""
    told = (("content-type", "application/json"), *((n.replace("_", "-"), v) for n, v in headers.items()))
    return Line(parts=(body if isinstance(body, bytes) else msgspec.json.encode(body),), status=status, headers=told)


def hanging(*parts: bytes) -> Line:
    """An answer that never ends."""
    return Line(parts=parts, headers=(("content-type", "text/event-stream"),), hangs=True)


def streamed(*events: object, breaks: bool = False, **gates: asyncio.Event) -> Line:
    """A stream; `gate3=…` holds back its event number 3."""
    return Line(
        parts=tuple(event if isinstance(event, bytes) else sse(event) for event in events),
        headers=(("content-type", "text/event-stream"),),
        gates={int(name.removeprefix("gate")): gate for name, gate in gates.items()},
        breaks=breaks,
    )


def sse(payload: object, name: str = "") -> bytes:
    head = f"event: {name}\n".encode() if name else b""
    return head + b"data: " + msgspec.json.encode(payload) + b"\n\n"


def completion(
    text: str | None = None, *calls: tuple[str, str], finish: str = "", call_id: str = "c"
) -> dict[str, Any]:
    """A chat completion."""
    made = [
        {"id": f"{call_id}{n}", "type": "function", "function": {"name": name, "arguments": arguments}}
        for n, (name, arguments) in enumerate(calls)
    ]
    message: dict[str, Any] = {"role": "assistant", "content": text, **({"tool_calls": made} if made else {})}
    choice = {"index": 0, "message": message, "finish_reason": finish or ("tool_calls" if made else "stop")}
    usage = {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18}
    return {
        "id": "chatcmpl-b",
        "object": "chat.completion",
        "created": 7,
        "model": "b",
        "choices": [choice],
        "usage": usage,
    }


def chunk(delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
    """A piece of a streamed chat completion."""
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return {"id": "chatcmpl-b", "object": "chat.completion.chunk", "created": 7, "model": "b", "choices": [choice]}


def called(name: str, arguments: str, call_id: str = "c0") -> dict[str, Any]:
    """A delta with a call."""
    function = {"name": name, "arguments": arguments}
    return {"tool_calls": [{"index": 0, "id": call_id, "type": "function", "function": function}]}


DONE = b"data: [DONE]\n\n"


class ScriptedModel:
    """The server. `asked` are the bodies of its posts, `headers` theirs; `left` is set when a client goes away."""

    def __init__(self, *script: Line, slots: int = 8, tls: ssl.SSLContext | None = None, **pages: object) -> None:
        self._script, self._tls = iter(script), tls
        self.asked: list[bytes] = []
        self.headers: list[dict[str, str]] = []
        self.left, self.came = asyncio.Event(), asyncio.Event()
        caps = {"supports_tools": True, "supports_tool_calls": True}
        props = {"default_generation_settings": {"n_ctx": 8192}, "total_slots": slots, "chat_template_caps": caps}
        meta = {"n_ctx_train": 32768, "n_embd": 896, "n_params": 494_032_768, "n_vocab": 151_936, "size": 484_000_000}
        model = {"id": "tiny", "object": "model", "created": 7, "owned_by": "llamacpp", "meta": meta}
        listed = {"object": "list", "data": [model]}
        self._pages: dict[str, object] = {"/props": props, "/v1/models": listed, "/health": {"status": "ok"}}
        self._pages |= {f"/{name}": page for name, page in pages.items()}

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, ssl=self._tls)
        self.port = self._server.sockets[0].getsockname()[1]
        self.url = f"{'https' if self._tls else 'http'}://127.0.0.1:{self.port}"
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()

    def body(self, number: int) -> Any:
        return msgspec.json.decode(self.asked[number])

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while (line := await self._next(reader)) is not None:
                if not await self._tell(line, reader, writer):
                    return
        except (ConnectionError, asyncio.IncompleteReadError):
            self.left.set()
        except asyncio.CancelledError:
            pass  # the test is over
        finally:
            writer.close()

    async def _next(self, reader: asyncio.StreamReader) -> Line | None:
        """The answer to the next request; None where there is no more."""
        if not (first := await reader.readline()).strip():
            return None
        method, path, _ = first.decode().split(" ", 2)
        headers: dict[str, str] = {}
        while (header := (await reader.readline()).strip()) != b"":
            name, _, value = header.decode().partition(":")
            headers[name.lower()] = value.strip()
        body = await reader.readexactly(int(headers.get("content-length", "0")))
        if method == "GET" or path in self._pages or path in ("/tokenize", "/apply-template", "/api/show"):
            page = self._pages.get(path)
            page = page(msgspec.json.decode(body)) if callable(page) else page
            refused = 400 if path in self._pages else 404
            return whole({} if page is None else page, refused if page is None else 200)
        self.asked.append(body)
        self.headers.append(headers)
        self.came.set()
        return next(self._script)

    async def _tell(self, line: Line, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Whether the connection stays."""
        told = "".join(f"{name}: {value}\r\n" for name, value in line.headers)
        writer.write(f"HTTP/1.1 {line.status} Said\r\ntransfer-encoding: chunked\r\n{told}\r\n".encode())
        for number, part in enumerate(line.parts):
            if gate := line.gates.get(number):
                await gate.wait()
            writer.write(b"%x\r\n%b\r\n" % (len(part), part))
            await writer.drain()
        if line.hangs:
            await reader.read()
            self.left.set()
        if line.hangs or line.breaks:
            return False
        writer.write(b"0\r\n\r\n")
        await writer.drain()
        return True
