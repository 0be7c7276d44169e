"""Prompt: an agent's system prompt as named sections, and the context that the next prompt will use."""

import re
from collections.abc import Mapping
from typing import Literal, get_args

from msgspec import Struct

from stages.message import System, size
from stages.state import State
from stages.tokens import STARTING_RATE, length, whole_rate

# Sections: an agent's system prompt as named parts in a fixed order, so that equal settings give equal bytes.

SectionName = Literal["instructions", "background", "guidance"]
"""The user's own text, background (such as an AGENTS.md), and how a turn ends; in this order."""

ORDER: tuple[SectionName, ...] = get_args(SectionName)


class Section(Struct, frozen=True, kw_only=True):
    """A part of a system prompt. `tokens` is an estimate."""

    name: SectionName
    text: str
    tokens: int


def sections_of(texts: Mapping[SectionName, str], rate: float = STARTING_RATE) -> tuple[Section, ...]:
    """The sections that have a text, in their order, with their tokens at `rate` tokens per character."""
    written = {name: text for name in ORDER if (text := texts.get(name, "").strip())}
    if "background" in written:
        # Somebody else wrote it, so it is between tags that it cannot close.
        written["background"] = f"<background>\n{_TAG.sub('&lt;', written['background'])}\n</background>"
    return tuple(Section(name=name, text=text, tokens=int(length(text) * rate) + 1) for name, text in written.items())


def joined(sections: tuple[Section, ...]) -> str:
    """The sections as one system prompt."""
    return "\n\n".join(section.text for section in sections)


_TAG = re.compile(r"<(?=\s*(?:/\s*)?background)", re.IGNORECASE)
"""The beginning of such a tag as a model might read it: opening or closing, in any case, with blanks."""


# Prompt use: the size of the next prompt, by its parts.


class PromptUse(Struct, frozen=True, kw_only=True):
    """Estimated tokens of the system prompt, the tools, and the other messages; `limit` is the maximum for all.

    `tools` is 0 before the first request; `limit` is 0 if unknown.
    """

    system: int
    tools: int
    messages: int
    limit: int

    @property
    def used(self) -> int:
        """Tokens of the whole prompt."""
        return self.system + self.tools + self.messages


def prompt_use(state: State) -> PromptUse:
    """The current use of the context, at the rate that the server reported for the last prompt."""
    ledger = state.ledger
    rate = whole_rate(ledger.tokens_per_character, ledger.report)
    system = sum(size(message) for message in state.history if isinstance(message, System))
    messages = sum(map(size, state.history)) - system
    shown = state.prompt.size
    beside = max(0, ledger.prompt_size - shown) if shown else 0
    return PromptUse(
        system=int(system * rate),
        tools=int(beside * rate),
        messages=int(messages * rate),
        limit=ledger.context_tokens,
    )
