"""A llama.cpp server process whose answers cost a client dear: the path of the base URL says which, and how.

Its questions are answered by `asyncio`, so that a thousand clients at once are no trouble to it.
"""

import asyncio
import gzip
import json
import sys
from collections.abc import AsyncIterator
from functools import partial

from tests.serving import process

PLAIN = "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>{% endfor %}"
REPLY = {"choices": [{"message": {"role": "assistant", "content": '{"tool": "end", "args": {}}'}}]}


def known(path: str) -> object:
    """What an honest server says there."""
    props = {"default_generation_settings": {"n_ctx": 8192}, "chat_template": PLAIN}
    answers = {
        "props": props,
        "models": {"data": [{"id": "m"}]},
        "tokenize": {"tokens": [1, 2, 3]},
        "apply-template": {"prompt": "hello"},
        "completions": REPLY,
    }
    return answers[path.rsplit("/", 1)[-1]]


async def body(how: str, answer: bytes) -> AsyncIterator[bytes]:
    """The answer, in the way that the path asks for; without end where it is costly."""
    match how:
        case "endless":
            while True:
                yield b" " * 65536
        case "drip":
            while True:
                yield b" "
                await asyncio.sleep(0.02)
        case "gzip" | "br" | "zstd":
            bomb = gzip.compress(b" " * 1_000_000)
            for _ in range(1000):
                yield bomb
        case _:
            yield answer


async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answer requests for as long as they come."""
    try:
        while True:
            head = (await reader.readuntil(b"\r\n\r\n")).lower()
            path = head.split(b" ", 2)[1].decode()
            length = next((int(line[15:]) for line in head.split(b"\r\n") if line.startswith(b"content-length:")), 0)
            await reader.readexactly(length)
            # /HOW/WHERE/… is costly where the last part of the path is WHERE, /HOW/… everywhere.
            _, how, where, *_ = [*path.split("/"), ""]
            spoilt = how if path.endswith(where) else ""
            answer = json.dumps(known(path)).encode()
            packed = f"content-encoding: {spoilt}\r\n" if spoilt in {"gzip", "br", "zstd"} else ""
            size = "" if spoilt in {"endless", "drip", "gzip", "br", "zstd"} else f"content-length: {len(answer)}\r\n"
            writer.write(f"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n{packed}{size}\r\n".encode())
            async for chunk in body(spoilt, answer):
                writer.write(chunk)
                await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        pass
    finally:
        writer.close()


async def main() -> None:
    server = await asyncio.start_server(handle, "127.0.0.1", 0, backlog=4096)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


costly = partial(process, __file__)
"""The address of a fresh server process, as a context manager."""


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
