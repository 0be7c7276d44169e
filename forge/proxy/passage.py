"""Passage: the record of a finished request for log, metrics and terminal, without credentials."""

from msgspec import Struct

from forge.observation import Notes

AGENT_LENGTH = 100
"""Maximum characters kept of a User-Agent."""

_TOLD = 5
"""Maximum notes of one kind in a log line: a reply may hold a thousand calls."""


class Passage(Struct, frozen=True):
    """A finished request. `at` is in seconds since 1970, `path` without `/v1`; `agent` is the User-Agent."""

    at: float
    method: str
    path: str
    agent: str
    status: int
    seconds: float
    notes: Notes


_ENDED_EARLY = {"disconnected": "the client disconnected", "aborted": "the proxy was stopped"}
"""Outcomes that are not about the model's reply, in words."""


def _said(notes: Notes) -> list[str]:
    """The outcome and what forge did: rescued calls, retries, compaction, content left out; and what went wrong."""
    said: list[str] = [_ENDED_EARLY.get(notes.outcome, notes.outcome)] if notes.outcome else []
    said += [f"rescued {_listed(notes.rescued)}"] if notes.rescued else []
    if notes.attempts > 1:
        times = "once" if notes.attempts == 2 else f"{notes.attempts - 1} times"
        why = f" for {_listed(tuple(dict.fromkeys(notes.refused)))}" if notes.refused else ""
        said.append(f"retried {times}{why}")
    said += [f"{notes.compacted} compacted"] if notes.compacted else []
    said += ["too long for context_tokens, and cannot be compacted"] if notes.too_long else []
    said += [f"{_listed(notes.left_out)} left out"] if notes.left_out else []
    return [*said, notes.problem] if notes.problem else said


def summary_line(passage: Passage) -> str:
    """The passage as a log line."""
    notes = passage.notes
    said = "; ".join(_said(notes))
    tokens = f" {notes.usage.prompt}+{notes.usage.completion} tokens" if notes.usage else ""
    took = f"{passage.seconds * 1000:.0f} ms"
    status = passage.status or "-"  # no answer was begun
    request = f"{_safe(passage.method, 20)} {_safe(passage.path)} {status} {took}{tokens}"
    return f"{request} ({_safe(said, 400)})" if said else request


def client_name(passage: Passage) -> str:
    """The client's name from its User-Agent: `OpenAI/Python` for `OpenAI/Python 2.1.0 (…)`."""
    return _safe(passage.agent.split(" ")[0], 40)


def _listed(names: tuple[str, ...]) -> str:
    more = f" and {len(names) - _TOLD} more" if len(names) > _TOLD else ""
    return ", ".join(name[:80] for name in names[:_TOLD]) + more


def _safe(text: str, width: int = 200) -> str:
    """The text cut to that width, with control characters escaped."""
    cut = text[:width]
    return cut if cut.isprintable() else cut.encode("unicode_escape").decode()
