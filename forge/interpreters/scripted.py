"""A model that answers from a list: for tests of workflows, guards and pipelines, without a server."""

import re
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from itertools import takewhile
from math import log

import msgspec
from msgspec import Struct

from forge.connection import Connection, Setup
from forge.errors import ForgeError, checked_options, quantity
from forge.outcome import short_repr
from stages.effect import Fault, RawCall, Replied, Reply, Request, Send, TokenProbability, Undelivered
from stages.wire.target import Mode

Line = str | Reply | Fault

TOLD = 2_000
"""Maximum characters of a message in a ScriptError."""


class ScriptError(ForgeError):
    """The run needed more answers than the script has, or fewer."""


def call(name: str, /, **arguments: object) -> Reply:
    """A reply with one native tool call."""
    return calls((name, arguments))


def calls(*made: tuple[str, Mapping[str, object]]) -> Reply:
    """A reply with several native tool calls."""
    encoded = ((name, msgspec.json.encode(arguments).decode()) for name, arguments in made)
    return Reply(calls=tuple(RawCall(name=n, arguments=a) for n, a in encoded), finish="tool_calls")


def worded(text: str, **likelier: float) -> Reply:
    """A text reply with token probabilities, one token per word: the given ones for named words, 1 for the others.

    No alternatives are listed, so the other offered values share the rest.
    """
    words = _WORD.findall(text)
    tokens = (TokenProbability(word, log(likelier.get(word, 1.0))) for word in words)
    return Reply(text=text, tokens=tuple(tokens))


_WORD = re.compile(r"\w+|\W")


class Scripted:
    """A backend that gives these answers in turn: text, a whole `Reply` (see `call`), or a `Fault`.

    `logprobs`: it supports token probabilities (`Reply.tokens`, see `worded`).
    `requests` are the request bodies. `assert_complete` fails if answers are left over.
    """

    @checked_options
    def __init__(
        self,
        script: Iterable[Line],
        *,
        mode: Mode = "native",
        context_tokens: int = 8192,
        logprobs: bool = False,
    ) -> None:
        self._script = _lines(script if isinstance(script, str) else tuple(script))
        self._mode = mode
        self._context_tokens = context_tokens
        self._logprobs = logprobs
        self._requests: list[Request] = []

    def __repr__(self) -> str:
        """How much of the script has been used."""
        return f"Scripted({len(self._requests)} of {quantity(len(self._script), 'answer')} used)"

    @property
    def requests(self) -> tuple[bytes, ...]:
        """The request bodies so far."""
        return tuple(request.body for request in self._requests)

    async def __call__(self, effect: Send) -> Replied | Undelivered:
        """The next answer of the script. ScriptError with the last messages if there is none."""
        number = len(self._requests)
        self._requests.append(effect.request)
        if number >= len(self._script):
            has = quantity(len(self._script), "answer")
            # The messages since the model's last reply: results, and corrections where it was wrong.
            written = [msgspec.json.decode(one, type=_Written) for one in reversed(effect.request.messages)]
            last = [*takewhile(lambda one: one.role != "assistant", written)][::-1]
            told = "\n".join(f"{one.role}: {short_repr(one.content, quoted=False, most=TOLD)}" for one in last)
            raise ScriptError(
                f"the script has {has}, but the run asked for answer {number + 1} (turn {effect.turn}). "
                f"The last messages to the model:\n{told}"
            )
        line = self._script[number]
        if isinstance(line, Fault):
            return Undelivered(fault=line)
        return Replied(reply=Reply(text=line) if isinstance(line, str) else line)

    def assert_complete(self) -> None:
        """ScriptError if the run ended before the script did, showing the next answer."""
        used = len(self._requests)
        if used < len(self._script):
            raise ScriptError(
                f"the run used {used} of the script's {len(self._script)} answers; the next would be "
                f"{self._script[used]!r}"
            )

    @asynccontextmanager
    async def connect(self) -> AsyncIterator[Connection]:
        """The connection to itself."""
        known = Setup(
            mode=self._mode,
            model="scripted",
            context_tokens=self._context_tokens,
            logprobs=self._logprobs,
        )
        yield Connection(known, self)


@checked_options
def _lines(script: Sequence[Line]) -> tuple[Line, ...]:
    return tuple(script)


class _Written(Struct):
    role: str = ""
    content: object = ""
