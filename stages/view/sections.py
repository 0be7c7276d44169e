"""Sections: an agent's system prompt as named parts in a fixed order, so equal settings give equal bytes."""

import re
from collections.abc import Mapping
from typing import Literal, get_args

from msgspec import Struct

from stages.tokens import STARTING_RATE, length

SectionName = Literal["instructions", "background", "guidance"]
"""What the user wrote, what is known of the surroundings (such as an AGENTS.md), how a turn ends: in this order."""

ORDER: tuple[SectionName, ...] = get_args(SectionName)


class Section(Struct, frozen=True, kw_only=True):
    """A part of a system prompt. `tokens` is an estimate."""

    name: SectionName
    text: str
    tokens: int


def sections_of(texts: Mapping[SectionName, str], rate: float = STARTING_RATE) -> tuple[Section, ...]:
    """The parts that have a text, in their order, each with its tokens at `rate` tokens per character."""
    written = ((name, _written(name, texts.get(name, "").strip())) for name in ORDER)
    return tuple(
        Section(name=name, text=text, tokens=int(length(text) * rate) + 1) for name, text in written if text.strip()
    )


def joined(sections: tuple[Section, ...]) -> str:
    """The system prompt that they make."""
    return "\n\n".join(section.text for section in sections)


def _written(name: SectionName, text: str) -> str:
    """The text as the prompt has it: what somebody else wrote stands between tags, and cannot close them."""
    if name != "background" or not text:
        return text
    return f"<background>\n{_TAG.sub('&lt;', text)}\n</background>"


_TAG = re.compile(r"<(?=\s*(?:/\s*)?background)", re.IGNORECASE)
"""What begins a tag of that name, as a model may read it: closing or opening, in capitals, with blanks."""
