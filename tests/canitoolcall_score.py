"""The fixtures of canitoolcall, read by forge as a client would read them: reasoning, rescue, schema."""

import re
from collections.abc import Iterator
from typing import Literal

import msgspec
from canitoolcall.fixtures import default_fixtures_dir
from msgspec import Raw, Struct

from stages.reasoning import split_reasoning
from stages.rescue import rescue
from stages.schema import Fits, checker

Verdict = Literal["exact", "calls", "wrong"]


class Tool(Struct, frozen=True):
    """An offered tool."""

    name: str
    parameters: Raw = Raw(b'{"type":"object"}')


class Offer(Struct, frozen=True):
    """A tool in the OpenAI form."""

    function: Tool


class Call(Struct, frozen=True):
    """A call with its arguments as values."""

    name: str
    arguments: object


class Expected(Struct, frozen=True):
    """What a correct parser gives."""

    content: str | None
    reasoning_content: str | None
    tool_calls: tuple[Call, ...]


class Fixture(Struct, frozen=True):
    """One recorded reply; without `expected` it is torn, and no call may come of it."""

    id: str
    family: str
    tools: tuple[Offer, ...]
    raw_output: str
    expected: Expected | None = None
    generation_prompt: str | None = None


def fixtures() -> Iterator[Fixture]:
    """All fixtures that the package brings, by family."""
    for path in sorted(default_fixtures_dir().glob("*/*.jsonl")):
        for line in path.read_text(encoding="utf-8").splitlines():
            yield msgspec.json.decode(line, type=Fixture)


def judged(fixture: Fixture) -> Verdict:
    """`exact`: calls, text and reasoning are as expected (whitespace around them aside); `calls`: the calls are."""
    prefilled = re.search(r"<think>\s*\Z", fixture.generation_prompt or "")
    reasoning, text = split_reasoning(("<think>" if prefilled else "") + fixture.raw_output)
    schemas = {offer.function.name: offer.function.parameters for offer in fixture.tools}
    found = rescue(text, schemas.keys())
    calls = tuple(Call(call.name, _coerced(call.arguments, schemas[call.name])) for call in found.calls)
    expected = fixture.expected
    if calls != (expected.tool_calls if expected else ()):
        return "wrong"
    same = expected is None or (
        found.rest == (expected.content or "").strip() and reasoning == (expected.reasoning_content or "").strip()
    )
    return "exact" if same else "calls"


def _coerced(arguments: str, schema: Raw) -> object:
    """The arguments after the schema check, as they would reach the tool; where they don't fit, as they are."""
    checked = checker(schema)(arguments)
    return msgspec.json.decode(checked.arguments if isinstance(checked, Fits) else arguments)
