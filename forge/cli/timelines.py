"""The record of a run, section by section: what the model was sent and said, and what ran; pages are saved here too."""

import os
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from forge.cli.rows import RunRow, provenance, reply_rows, result_row
from forge.errors import ForgeError
from forge.journal.records import Entry, Journal, SentPart
from forge.journal.replaying import effect_name
from stages.effect import Approved, Ask, Execute, Outcome, Replied, Results, Undelivered
from stages.repair.decoding import decode

# The timeline of a journal as it is, without its workflow.


class Section(Struct, frozen=True, kw_only=True):
    """A model call, with the tools that ran after it."""

    title: str
    items: tuple[RunRow, ...] = ()


class _Sent(Struct):
    """A message as a wire has it: `content` is a text or a list of parts, which differ by protocol."""

    role: str = ""
    content: Raw = Raw(b'""')


_messages = msgspec.json.Decoder(_Sent)
_texts = msgspec.json.Decoder(str)


def recorded_timeline(journal: Journal) -> tuple[Section, ...]:
    """A section for each model call, with the tools that ran after it."""
    sections: list[Section] = []
    results: set[str] = set()
    for entry in journal.entries:
        if isinstance(entry.effect, SentPart):
            sections.append(Section(title=f"Model call {len(sections) + 1}"))
        elif not sections:
            sections.append(Section(title="Before the first model call"))
        items = tuple(_journal_items(entry, results))
        sections[-1] = replace(sections[-1], items=sections[-1].items + items)
    if journal.pending is not None:
        unfinished = RunRow("unknown", f"started, never finished: {effect_name(journal.pending)}")
        sections.append(Section(title="The end", items=(unfinished,)))
    return tuple(sections)


def _journal_items(entry: Entry, results: set[str]) -> Iterator[RunRow]:
    """What happened; `results` are the texts that are shown already as what a tool returned."""
    match entry.effect:
        case SentPart(messages=messages):
            told = (_sent(message) for message in messages)
            yield from (item for item in told if item.label != "assistant" and item.text not in results)
        case Execute(calls=calls):
            yield from (RunRow("runs", f"{call.name} {call.arguments}{provenance(call)}") for call in calls)
        case Ask(call=call):
            yield RunRow("approval", f"{call.name} {call.arguments}")
    for item in _outcome(entry.outcome):
        if item.label in {"result", "failed"}:
            results.add(item.text)
        yield item


def _outcome(outcome: Outcome) -> Iterator[RunRow]:
    yield from _took_items(outcome)
    match outcome:
        case Replied(reply=reply):
            yield from reply_rows(reply)
        case Results(results=results):
            yield from map(result_row, results)
        case Approved():
            yield RunRow("approval", "given")
        case _:
            pass


def _sent(message: Raw) -> RunRow:
    """The message; parts that are no text are shown as they were sent."""
    try:
        known = decode(_messages, bytes(message))
    except msgspec.DecodeError:
        return RunRow("sent", bytes(message).decode(errors="replace"))
    try:
        return RunRow(known.role, decode(_texts, bytes(known.content)))
    except msgspec.DecodeError:
        return RunRow(known.role, bytes(known.content).decode(errors="replace"))


def _took_items(outcome: Outcome) -> Iterator[RunRow]:
    """How long it took, of a model call or of tools."""
    match outcome:
        case Replied(reply=reply, seconds=seconds):
            used = reply.usage
            tokens = f", {used.prompt:,} prompt and {used.completion:,} reply tokens" if used else ""
            yield RunRow("model", f"{seconds_of(seconds)}{tokens}")
        case Undelivered(fault=fault, seconds=seconds):
            yield RunRow("failed", f"no answer after {seconds_of(seconds)}: {fault.detail}")
        case Results(seconds=seconds):
            yield RunRow("tools", seconds_of(seconds))
        case _:
            pass


def seconds_of(number: float) -> str:
    """A duration as a text."""
    if number < 0.001:
        return "under 1 ms"
    return f"{1000 * number:.0f} ms" if number < 1 else f"{number:,.1f} s"


# Pages: saved for their owner alone, without the folders of this machine.

_DOCTYPE = b"<!doctype html>"


def save_page(path: Path, content: str) -> None:
    """Write a page that only its owner may read: like a journal, it holds everything that was said.

    ForgeError if that is not possible, or would replace something else than a page.
    """
    try:
        # A page, an empty file, and what has no content, such as /dev/null, may be replaced.
        if path.is_file() and path.read_bytes()[: len(_DOCTYPE)].lower() not in (b"", _DOCTYPE):
            raise ForgeError(f"{path} is there already, and is not a page; name another file for it")
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
            file.write(content)
    except OSError as error:
        raise ForgeError(f"cannot write the page {path}: {error.strerror}") from None


_HOMES = re.compile(
    r"(?:/home/[\w.-]{1,64}|/Users/[\w.-]{1,64}|/root|[A-Za-z]:\\{1,2}Users\\{1,2}[\w.-]{1,64})(?![\w.-])"
)
"""Home folders of any machine: pages are shared, and user names are private."""


def without_folders(text: str) -> str:
    """The text without the paths of the home, working and temporary folders."""
    for folder, name in ((Path.cwd(), "."), (Path.home(), "~"), (Path(tempfile.gettempdir()), "…")):
        if len(folder.parts) > 1:
            text = re.sub(re.escape(str(folder)) + r"(?![\w.-])", name, text)
    return _HOMES.sub("~", text)
