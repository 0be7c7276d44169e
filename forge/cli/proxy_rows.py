"""Rows of `forge proxy` in a terminal: a request each, and the totals below them."""

import time

from msgspec import Struct
from rich.text import Text

from forge.cli.plain import printable
from forge.errors import quantity
from forge.proxy.passage import Notes, Passage, actions, client_name

_PROTOCOLS = {"/chat/completions": "chat", "/responses": "responses", "/messages": "messages"}

_STYLES = {
    "clean": "green",
    "repaired": "cyan",
    "retried": "yellow",
    "exhausted": "bold red",
    "refused": "bold red",
    "error": "bold red",
}

_WITH_CLIENT, _WITH_MODEL = 100, 130
"""Terminal widths from which there is room for these columns, beside what forge did."""


class Load(Struct, frozen=True):
    """Requests at the backend, and those in the queue."""

    working: int
    waiting: int


class Totals(Struct, frozen=True):
    """What was served so far; `outcomes` by name, in the order in which they first came."""

    requests: int = 0
    outcomes: tuple[tuple[str, int], ...] = ()
    prompt: int = 0
    completion: int = 0

    def with_passage(self, passage: Passage) -> "Totals":
        """The totals with one request more."""
        notes = passage.notes
        counts = dict(self.outcomes)
        if notes.outcome:
            counts[notes.outcome] = counts.get(notes.outcome, 0) + 1
        used = (notes.usage.prompt, notes.usage.completion) if notes.usage else (0, 0)
        return Totals(self.requests + 1, tuple(counts.items()), self.prompt + used[0], self.completion + used[1])


def heading(width: int) -> Text:
    """The names of the columns."""
    names = ("time", "client", "protocol", "model", "in", "out", "outcome", "tries", "ms", "what forge did")
    return Text(_columns(names, width) + names[-1], style="bold")


def row(passage: Passage, width: int) -> Text:
    """One request."""
    notes = passage.notes
    protocol = _PROTOCOLS.get(passage.path, f"{passage.method} {passage.path}")
    tokens = (f"{notes.usage.prompt:,}", f"{notes.usage.completion:,}") if notes.usage else ("", "")
    tries = str(notes.attempts) if notes.outcome else ""
    clock = time.strftime("%H:%M:%S", time.localtime(passage.at))
    cells = (clock, client_name(passage), protocol, notes.model, *tokens, _ending(passage), tries, f"{_ms(passage)}")
    text = Text(_columns(tuple(printable(cell, 40) for cell in cells), width), no_wrap=True, overflow="ellipsis")
    text.append(printable(_did(notes)))
    if (style := _STYLES.get(notes.outcome)) is not None:
        text.highlight_words([_ending(passage)], style)
    else:
        text.stylize("dim")
    return text


def footer(totals: Totals, load: Load, width: int) -> Text:
    """The totals, and what is under way; with room for the ^C that the terminal writes behind it."""
    outcomes = "".join(f", {number:,} {name}" for name, number in totals.outcomes)
    tokens = f"tokens {totals.prompt:,} in, {totals.completion:,} out"
    under_way = f"{load.working} at work, {load.waiting} waiting"
    text = Text(f"{under_way} | {quantity(totals.requests, 'request')}{outcomes} | {tokens}", style="reverse")
    text.truncate(max(1, width - 3), overflow="ellipsis")
    return text


def _columns(cells: tuple[str, ...], width: int) -> str:
    clock, who, protocol, model, prompt, completion, outcome, tries, took = cells[:9]
    wide = f"{who:<16.16} " if width >= _WITH_CLIENT else ""
    named = f"{model:<16.16} " if width >= _WITH_MODEL else ""
    counts = f"{prompt:>7.7} {completion:>6.6}  {outcome:<10.10} {tries:>5.5} {took:>7.7}"
    return f"{clock:<8.8}  {wide}{protocol:<12.12} {named}{counts}  "


def _ending(passage: Passage) -> str:
    """How it ended: the outcome, with the status where that is none of success."""
    outcome = passage.notes.outcome
    return outcome if outcome and passage.status < 400 else f"{outcome} {passage.status}".strip()


def _ms(passage: Passage) -> str:
    return f"{passage.seconds * 1000:,.0f}"


def _did(notes: Notes) -> str:
    return "; ".join(actions(notes))
