"""A passage: a request that is over, as the log, the metrics and the terminal tell of it. It holds no credential."""

from typing import Literal

from msgspec import Struct

from stages.effect import Usage

RequestOutcome = Literal["", "passed", "clean", "repaired", "retried", "exhausted", "error", "left", "stopped"]
"""What became of a request (docs/proxy.md); empty: the model was not asked."""

AGENT_LENGTH = 100
"""Characters that are kept of a User-Agent."""

_TOLD = 5
"""Maximum notes of one kind in a line: a reply may hold a thousand calls."""


class Notes(Struct):
    """What those who serve a request note of it. `rescued` and `refused` name calls, never with what they were given.

    `compacted` is how the history was cut, as its header says it; `left_out` are kinds of what the backend does not get
    of the conversation.
    """

    outcome: RequestOutcome = ""
    attempts: int = 1
    model: str = ""
    usage: Usage | None = None
    compacted: str = ""
    left_out: tuple[str, ...] = ()
    rescued: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()


class Passage(Struct, frozen=True):
    """A request that is over. `at` are seconds since 1970; `path` is without `/v1`, `agent` as the client says it."""

    at: float
    method: str
    path: str
    agent: str
    status: int
    seconds: float
    notes: Notes


def actions(notes: Notes) -> list[str]:
    """What forge did: what was rescued, what was asked for again, what was cut."""
    said = [f"rescued {_listed(notes.rescued)}"] if notes.rescued else []
    if notes.attempts > 1:
        times = "once" if notes.attempts == 2 else f"{notes.attempts - 1} times"
        why = f" for {_listed(tuple(dict.fromkeys(notes.refused)))}" if notes.refused else ""
        said.append(f"retried {times}{why}")
    said += [f"{notes.compacted} compacted"] if notes.compacted else []
    return [*said, f"{_listed(notes.left_out)} left out"] if notes.left_out else said


def summary_line(passage: Passage) -> str:
    """The passage in one line of a log."""
    notes = passage.notes
    said = "; ".join([notes.outcome, *actions(notes)] if notes.outcome else actions(notes))
    tokens = f" {notes.usage.prompt}+{notes.usage.completion} tokens" if notes.usage else ""
    took = f"{passage.seconds * 1000:.0f} ms"
    request = f"{_safe(passage.method, 20)} {_safe(passage.path)} {passage.status} {took}{tokens}"
    return f"{request} ({_safe(said, 400)})" if said else request


def client_name(passage: Passage) -> str:
    """The name of the client, of what it says of itself: `OpenAI/Python` of `OpenAI/Python 2.1.0 (…)`."""
    return _safe(passage.agent.split(" ")[0], 40)


def _listed(names: tuple[str, ...]) -> str:
    more = f" and {len(names) - _TOLD} more" if len(names) > _TOLD else ""
    return ", ".join(name[:80] for name in names[:_TOLD]) + more


def _safe(text: str, width: int = 200) -> str:
    """The text within that width, without characters that could control a terminal or end a line."""
    cut = text[:width]
    return cut if cut.isprintable() else cut.encode("unicode_escape").decode()
