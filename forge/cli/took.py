"""Durations and tokens of a recorded run."""

from typing import Self

from msgspec import Struct
from msgspec.structs import replace

from stages.effect import Outcome, Replied, Results, Undelivered, Usage


class Took(Struct, frozen=True, kw_only=True):
    """Seconds spent, and tokens as the server counts them."""

    model: float = 0.0
    tools: float = 0.0
    prompt: int = 0
    completion: int = 0
    cached: int = 0

    def more(self, outcome: Outcome) -> Self:
        """With this outcome added."""
        match outcome:
            case Replied(reply=reply, seconds=seconds):
                usage = reply.usage or Usage()
                return replace(
                    self,
                    model=self.model + seconds,
                    prompt=self.prompt + usage.prompt,
                    completion=self.completion + usage.completion,
                    cached=self.cached + usage.cached,
                )
            case Undelivered(seconds=seconds):
                return replace(self, model=self.model + seconds)
            case Results(seconds=seconds):
                return replace(self, tools=self.tools + seconds)
            case _:
                return self

    def facts(self) -> tuple[str, ...]:
        """As texts."""
        seconds = f"model {seconds_of(self.model)}", f"tools {seconds_of(self.tools)}"
        if not self.prompt and not self.completion:
            return seconds
        cached = f" ({self.cached:,} of them cached)" if self.cached else ""
        return (*seconds, f"{self.prompt:,} prompt tokens{cached}", f"{self.completion:,} reply tokens")


def seconds_of(number: float) -> str:
    """A duration as a text."""
    if number < 0.001:
        return "under 1 ms"
    return f"{1000 * number:.0f} ms" if number < 1 else f"{number:,.1f} s"
