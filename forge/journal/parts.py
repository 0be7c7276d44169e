"""The journals of one message: its first run's, those of the runs that went on from it, and of agents within it.

`run.jsonl` goes on in `run.part-2.jsonl`, `run.part-3.jsonl` …; the work of an agent that one of its calls asked is in
`run.CALL.jsonl`, CALL being the id of the call; that of an agent that the message was handed to, in `run.hop-2.jsonl`.
Each is a whole journal.
"""

import re
from itertools import count, takewhile
from os import PathLike
from pathlib import Path

from forge.errors import JournalError


def journal_parts(path: str | PathLike[str]) -> tuple[Path, ...]:
    """The journals of a message that are there, in the order in which they were written: `path`, then its parts."""
    numbered = (_part(Path(path), number) for number in count(1))
    return tuple(takewhile(Path.exists, numbered))


def next_part(path: str | PathLike[str]) -> Path:
    """Where the next run of the message is recorded: `path` itself, or the first of its parts that is not there."""
    return _part(Path(path), len(journal_parts(path)) + 1)


def nested_journal(path: str | PathLike[str], call_id: str) -> Path:
    """Where the work of an agent is recorded that a call asked, in the run with the journal `path`.

    Of an id that is no plain word, as a server may give, only the plain characters are kept.
    """
    plain = re.sub(r"[^A-Za-z0-9_-]", "", call_id)[:_LONGEST] or "call"
    return next_part(_named(Path(path), plain))


def hop_journal(path: str | PathLike[str], number: int) -> Path:
    """Where the work of the agent is recorded that has a message as the `number`th, handed over by the one before."""
    return Path(path) if number == 1 else _named(Path(path), f"hop-{number}")


def refuse_other_parts(path: str | PathLike[str]) -> None:
    """JournalError where the journal is not there, and parts of another one are, which it would seem to go on in."""
    if not Path(path).exists() and (second := _part(Path(path), 2)).exists():
        raise JournalError(f"{second} is there already, and goes on from another {path}; write the journal elsewhere")


def _part(path: Path, number: int) -> Path:
    return path if number == 1 else _named(path, f"part-{number}")


def _named(path: Path, what: str) -> Path:
    return path.with_name(f"{path.stem}.{what}{path.suffix}")


_LONGEST = 60
"""Characters of an id in a file's name."""
