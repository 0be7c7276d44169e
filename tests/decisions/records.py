"""Records: runs of the suite as they once went, without what the code of the day calls its parts.

A record says how to build a run, what the model replied, and digests of what it was asked: no state, no module's name.
"""

import gzip
import hashlib
from collections.abc import Iterable
from pathlib import Path

import msgspec
from msgspec import Struct

from stages.effect import RawCall, Reply, TokenProbability, Usage
from stages.wire.target import Mode

RUNS = Path(__file__).parent / "runs.jsonl.gz"
TURNS = Path(__file__).parent / "turns.jsonl.gz"


class Said(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A reply. `calls` are id, name and arguments of each; `prompt` are the tokens that the server counted."""

    text: str = ""
    reasoning: str = ""
    calls: tuple[tuple[str, str, str], ...] = ()
    finish: str = "stop"
    prompt: int = 0

    def reply(self, *, measured: bool = False) -> Reply:
        """The reply; `measured`: with probabilities of tokens, which follow from the text."""
        calls = tuple(RawCall(id=each, name=name, arguments=text) for each, name, text in self.calls)
        usage = Usage(prompt=self.prompt) if self.prompt else None
        tokens = _tokens(self.text) if measured else ()
        return Reply(
            text=self.text, reasoning=self.reasoning, calls=calls, finish=self.finish, usage=usage, tokens=tokens
        )


def _tokens(text: str) -> tuple[TokenProbability, ...]:
    """Pieces of the text, one in eight of them unlikely."""
    pieces = [text[at : at + 4] for at in range(0, len(text), 4)]
    sure = (digest(piece.encode(), bytes([n % 7])).encode()[:1] > b"0" for n, piece in enumerate(pieces))
    return tuple(
        TokenProbability(
            piece, -0.01 if one else -1.2, ((piece, -0.01), ("x", -4.0)) if one else ((piece, -1.2), ("x", -0.4))
        )
        for piece, one in zip(pieces, sure, strict=True)
    )


class Asked(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A model call: a digest of what was sent, the tools on offer, and what happened until the next one.

    `tools` is empty where the request itself limits nothing: the prompt names them.
    """

    request: str
    tools: str = ""
    events: str = ""


class Run(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How to build a run, the model's replies, and how it went. `end` is the word of its end, and a digest of it."""

    source: str
    scenario: str
    seed: int
    mode: Mode
    ablation: str = ""
    compact: str = ""
    unsure: str = ""
    take: int = 0
    replies: tuple[Said, ...] = ()
    asked: tuple[Asked, ...] = ()
    end: str = ""

    @property
    def name(self) -> str:
        """What `--show` takes."""
        words = (self.source, self.scenario, str(self.seed), self.mode, self.ablation, self.compact, self.unsure)
        return "/".join(filter(None, (*words, str(self.take))))


class Turn(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A turn of the proxy: the client's request, the model's replies, and digests of requests and of the answer."""

    name: str
    protocol: str
    kind: str
    policy: str
    body: msgspec.Raw
    replies: tuple[Said, ...] = ()
    asked: tuple[str, ...] = ()
    end: str = ""


def digest(*parts: bytes) -> str:
    whole = hashlib.sha256()
    for part in parts:
        whole.update(len(part).to_bytes(4, "big") + part)
    return whole.hexdigest()[:12]


def stored_runs() -> list[Run]:
    return msgspec.json.Decoder(Run).decode_lines(gzip.decompress(RUNS.read_bytes()))


def stored_turns() -> list[Turn]:
    return msgspec.json.Decoder(Turn).decode_lines(gzip.decompress(TURNS.read_bytes()))


def store(path: Path, records: Iterable[Struct]) -> None:
    """The same bytes for the same records, whenever they are written."""
    lines = msgspec.json.Encoder().encode_lines(list(records))
    path.write_bytes(gzip.compress(lines, compresslevel=9, mtime=0))
