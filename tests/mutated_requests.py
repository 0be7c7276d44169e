"""Random and mutated requests to a proxy before servers that misbehave: `python -m tests.mutated_requests 100000`.

Each answer must be one that the client can show. What is not is printed, with the request; the exit code is 1 then. The
second argument is the seed.
"""

import asyncio
import json
import logging
import random
import resource
import sys
import time
from collections import Counter
from collections.abc import Iterator
from typing import Any

import aiohttp

from forge.backends import named
from forge.proxy import ProxyOptions, ProxyServer
from tests.scripted_model import Line, ScriptedModel, chunk, completion, streamed, whole
from tests.test_proxy_bad_input import HISTORIES, PROTOCOLS, ended
from tests.test_proxy_faulty_servers import BACKENDS, CHAT_SERVERS, MESSAGES_SERVERS, OLLAMA_SERVERS

ODD: list[Any] = [
    *(None, True, False, 0, -1, 1e308, 10**30, "", "x", "\x00", "[" * 200, '{"at": 4}', "look", "c1", "user", "tool"),
    *([], {}, [[]], [None], {"type": "text"}, {"type": "x", "text": 7}, {"a": {"b": [1, {"c": None}]}}),
]
FIELDS = [
    "model",
    "stream",
    "tools",
    "tool_choice",
    "n",
    "stop",
    "odd",
    "thinking",
    "response_format",
    "text",
    "system",
]
BAD = [
    whole({"error": {"message": "no", "code": 500}}, 500),
    whole({"error": {"message": "slow", "type": "x"}}, 429),
    whole(b"<html>", 502),
    whole(b"{"),
    streamed(b"data: {\n\n"),
    streamed(chunk({"content": "Half"})),
    whole(completion("", ("look", '{"at":'))),
    whole(completion("", ("fly", "{}"))),
    whole(completion("")),
    whole(completion('<tool_call>{"name":"look","arguments":{"at":"4"}}</tool_call>')),
]
SERVERS = {"chat": CHAT_SERVERS, "messages": MESSAGES_SERVERS, "ollama": OLLAMA_SERVERS}
CLIENTS = 8


class Requests:
    """Requests of all protocols, one as odd as the other."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)  # noqa: S311 - to be repeatable
        self._histories = [history for name, history in HISTORIES.items() if "deeply" not in name]

    def __iter__(self) -> Iterator[tuple[str, bytes]]:
        """A path and a body, without end."""
        while True:
            path = self._random.choice(list(PROTOCOLS))
            body: Any = PROTOCOLS[path](self._random.choice(self._histories))
            body["stream"] = self._random.random() < 0.5
            for _ in range(self._random.choice([0, 0, 1, 1, 2])):
                body = self._mutated(body)
            raw = json.dumps(body).encode()
            counted = self._random.random() < 0.05
            yield "/v1/messages/count_tokens" if counted else path, self._noisy(raw)

    def _mutated(self, node: Any) -> Any:
        """The value with something else in one place."""
        if not isinstance(node, dict | list) or not node or self._random.random() < 0.15:
            return self._random.choice(ODD)
        made: Any = node.copy()
        key = self._random.choice(list(node)) if isinstance(node, dict) else self._random.randrange(len(node))
        chance = self._random.random()
        if chance < 0.1:
            del made[key]
        elif chance < 0.2 and isinstance(made, dict):
            made[self._random.choice(FIELDS)] = self._random.choice(ODD)
        elif chance < 0.2:
            made.insert(key, self._random.choice(node))
        else:
            made[key] = self._mutated(node[key])
        return made

    def _noisy(self, body: bytes) -> bytes:
        """One in ten with other bytes in it."""
        if self._random.random() < 0.9:
            return body
        noisy = bytearray(body)
        for _ in range(self._random.randint(1, 4)):
            at = self._random.randrange(len(noisy))
            noisy[at : at + self._random.randint(0, 3)] = bytes([self._random.randrange(256)])
        return bytes(noisy)


class Endless(ScriptedModel):
    """A server that gives any of these answers to each request, and remembers none."""

    def __init__(self, lines: list[Line], seed: int, **pages: Any) -> None:
        super().__init__(**pages)
        chosen = random.Random(seed)  # noqa: S311 - to be repeatable
        self._script = iter(lambda: chosen.choice(lines), None)

    async def _next(self, reader: asyncio.StreamReader) -> Line | None:
        found = await super()._next(reader)
        self.asked.clear()
        self.headers.clear()
        return found


def is_shown(status: int, kind: str, answer: bytes, path: str) -> bool:
    """Whether a client can show the answer."""
    try:
        if kind.startswith("text/event-stream"):
            # With several choices, or with probabilities, the server's own words pass to the end.
            return ended(answer, path) or b"chat.completion.chunk" in answer
        told = json.loads(answer)
        return bool(told["error"]["message"]) and b"its log says why" not in answer if status >= 400 else True
    except (ValueError, LookupError):
        return False


async def tried(kind: str, number: int, seed: int) -> tuple[Counter[int], int]:
    """So many requests to a proxy before servers of that kind: the statuses, and how many answers were none."""
    how = {"model": "m", **BACKENDS[kind]}
    pages, profile = how.get("pages", {}), how["profile"]
    statuses, wrong = Counter[int](), 0
    async with (
        Endless([*SERVERS[kind].values(), *BAD], seed, **pages) as model,
        ProxyServer(named(model.url, how["model"], profile=profile), ProxyOptions(port=0, max_retries=1)) as proxy,
        aiohttp.ClientSession() as session,
    ):
        requests = iter(Requests(seed))

        async def client() -> None:
            nonlocal wrong
            for _ in range(number // CLIENTS):
                path, body = next(requests)
                async with session.post(proxy.url + path, data=body) as answer:
                    got = await answer.read()
                    statuses[answer.status] += 1
                    if not is_shown(answer.status, answer.headers["content-type"], got, path):
                        wrong += 1
                        print(kind, path, answer.status, body[:1000], got[-500:])

        await asyncio.gather(*(client() for _ in range(CLIENTS)))
    return statuses, wrong


def main(number: int, seed: int = 1) -> int:
    """The exit code."""
    logging.disable(logging.WARNING)
    began, statuses, wrong = time.monotonic(), Counter[int](), 0
    for kind in SERVERS:
        more, none = asyncio.run(tried(kind, number // len(SERVERS), seed))
        statuses, wrong = statuses + more, wrong + none
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    told = ", ".join(f"{status}: {count}" for status, count in sorted(statuses.items()))
    print(f"{told}; {wrong} wrong; {time.monotonic() - began:.0f} s, {memory} MiB")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
