"""Prompt: an agent's system prompt as named parts, and what the next prompt takes of the context."""

import re
from collections.abc import Mapping
from typing import Literal, get_args

from msgspec import Struct

from stages.message import System, size
from stages.state import State
from stages.tokens import STARTING_RATE, length, whole_rate

# Sections: an agent's system prompt as named parts in a fixed order, so equal settings give equal bytes.

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


# Prompt use: what the next prompt takes of the context, by what it is taken for.


class PromptUse(Struct, frozen=True, kw_only=True):
    """Tokens of the system prompt, the tools, and the other messages, estimated; and of the whole prompt at most.

    `tools` is 0 before the first request; `limit` is 0 where it is not known.
    """

    system: int
    tools: int
    messages: int
    limit: int

    @property
    def used(self) -> int:
        """The whole prompt."""
        return self.system + self.tools + self.messages


def prompt_use(state: State) -> PromptUse:
    """What the history takes of the context now, by what the server has reported of the last prompt."""
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
