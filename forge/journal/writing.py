"""Writing a journal: each effect before it is performed, its outcome before the run continues."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from os import PathLike
from pathlib import Path

import msgspec
from msgspec.structs import replace

from forge.errors import JournalError, UnrecordedError
from forge.interpreters import Interpreter
from forge.journal.file import LARGEST_OUTCOME, JournalFile
from forge.journal.records import AgainLine, EffectLine, Header, Journal, OutcomeLine, shortened
from forge.journal.redaction import Redactor
from stages.effect import Effect, Execute, Outcome, Request, Send


@contextmanager
def recording(
    interpret: Interpreter, path: str | PathLike[str], header: Header, redactor: Redactor | None = None
) -> Iterator[Interpreter]:
    """The interpreter, recording every effect and outcome in a new file at `path`, redacted by `redactor`.

    JournalError if the file exists already or cannot be written. Once the run has started, a failure to write is an
    UnrecordedError.
    """
    from importlib.metadata import version  # noqa: PLC0415 - slow to import, and only a journal names the version

    with JournalFile.new(Path(path)) as file:
        dated = replace(header, forge=version("forge-toolcalls"), started=f"{datetime.now(UTC):%FT%TZ}")
        file.append(_header(dated, redactor))
        yield _writing(interpret, file, redactor=redactor)


@contextmanager
def continuing(interpret: Interpreter, path: str | Path, journal: Journal) -> Iterator[Interpreter]:
    """The interpreter, recording at the end of the journal at `path`, which was read as `journal`.

    An incomplete last line is cut off. JournalError if another run is writing to it, or has since it was read. The
    first effect must be the one that `journal` has pending.
    """
    with JournalFile.after(Path(path), journal.size, journal.check) as file:
        pending = None if journal.pending is None else journal.effect(len(journal.entries))
        yield _writing(interpret, file, journal.last, pending=pending)


def _header(header: Header, redactor: Redactor | None) -> bytes:
    """The first line. JournalError if it cannot be read back: a state may hold numbers that JSON cannot represent."""
    line = _encoded(header, None, redactor)
    try:
        msgspec.json.decode(line, type=Header)
    except msgspec.DecodeError as error:
        raise JournalError(f"the initial state of the run cannot be written: {error}") from None
    return line


def _encoded(
    line: Header | EffectLine | AgainLine | OutcomeLine, about: Effect | Outcome | None, redactor: Redactor | None
) -> bytes:
    return redactor.written(line, about) if redactor else msgspec.json.encode(line)


def _writing(
    interpret: Interpreter,
    file: JournalFile,
    last: Request = Request(),  # noqa: B008 - frozen
    redactor: Redactor | None = None,
    pending: Effect | None = None,
) -> Interpreter:
    async def perform(effect: Effect) -> Outcome:
        nonlocal last, pending
        if pending is not None and pending != effect:
            raise JournalError("the run continues with an effect other than the pending one of its journal")
        begun = EffectLine(effect=shortened(effect, last)) if pending is None else AgainLine()
        line = _encoded(begun, effect, redactor)
        try:
            # A tool's effects cannot be undone: the record that it started must survive a power failure.
            file.append(line, room=LARGEST_OUTCOME, durable=isinstance(effect, Execute))
        except JournalError as error:
            raise UnrecordedError(str(error)) from error
        pending = None
        last = effect.request if isinstance(effect, Send) else last
        outcome = await interpret(effect)
        line = _encoded(OutcomeLine(outcome=outcome), outcome, redactor)
        try:
            file.append(line)
        except JournalError as error:
            raise UnrecordedError(str(error), outcome) from error
        return outcome

    return perform
