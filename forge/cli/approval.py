"""Approval in a terminal: shows everything that would run, and reads the person's answer."""

import shutil
from collections.abc import Iterator

import msgspec
from rich.cells import chop_cells

from forge.interpreters import Answer
from forge.interpreters.threads import in_thread, unheard
from stages.effect import Approved, Ask, Rejected, Settled, Unanswered
from stages.message import ToolCall

_MARGIN = "     "

_UNSEEN = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0")
"""Letters and marks that are invisible."""


async def ask_person(effect: Ask) -> Answer:
    """The answer typed in the terminal; anything but yes is a rejection, and leaves an unknown outcome open."""
    size = shutil.get_terminal_size()
    lines = list(question_lines(effect, max(30, size.columns - len(_MARGIN) - 1)))
    if not await _read(lines, max(5, size.lines - 4)):
        return Rejected(digest=effect.digest, reason="the user said no")
    unsure = effect.in_doubt
    choice = "[h] it happened  [n] it did not happen  [y] run it anyway  [Enter] no" if unsure else "[y/N]"
    match await _typed(f"{_MARGIN}May it run? {choice} "), unsure:
        case None, _:
            return Unanswered(digest=effect.digest, reason="nobody answered in the terminal")
        case (("y" | "yes"), _):
            return Approved(digest=effect.digest)
        case ("h" | "n") as found, ToolCall():
            return Settled(digest=effect.digest, happened=found == "h")
        case _:
            return Rejected(digest=effect.digest, reason="the user said no")


def question_lines(effect: Ask, width: int) -> Iterator[str]:
    """The lines of the question, with every argument in full; `width` is the maximum line width in cells."""
    if unsure := effect.in_doubt:
        yield "This was started before, and its outcome is unknown:"
        yield from _lines(unsure, width)
    if effect.problem:
        yield from chop_cells(f"These arguments are wrong: {visible(effect.problem)}", width)
    if unsure is None or unsure.arguments != effect.call.arguments:
        yield "This is about to run:" if unsure is None else "This is about to run now:"
        yield from _lines(effect.call, width)


def _lines(call: ToolCall, width: int) -> Iterator[str]:
    whole = msgspec.json.format(call.arguments, indent=2)
    for line in f"{visible(call.name)} {whole}".split("\n"):
        yield from chop_cells(visible(line), width)


def visible(text: str) -> str:
    """The text with an escape for every character that is invisible or changes how others are shown."""
    return "".join(c if c.isprintable() and c not in _UNSEEN and not _selects(c) else _escape(c) for c in text)


def _selects(character: str) -> bool:
    return "\ufe00" <= character <= "\ufe0f" or "\U000e0100" <= character <= "\U000e01ef"


def _escape(character: str) -> str:
    """The character as a JSON escape."""
    pairs = character.encode("utf-16-be", errors="surrogatepass")
    return "".join(f"\\u{pairs[at]:02x}{pairs[at + 1]:02x}" for at in range(0, len(pairs), 2))


async def _read(lines: list[str], height: int) -> bool:
    """Show the lines, a screen at a time. False if the person stops reading."""
    for start in range(0, len(lines), height):
        print("\n".join(f"{_MARGIN}{line}" for line in lines[start : start + height]))
        left = len(lines) - start - height
        if left > 0 and await _typed(f"{_MARGIN}{left} more lines: [Enter] to continue, [q] for no ") not in {"", "y"}:
            return False
    return True


async def _typed(prompt: str) -> str | None:
    """The typed answer in lower case; None at the end of input."""
    try:
        return str(await in_thread(lambda: input(prompt), unheard)).strip().lower()
    except EOFError:
        return None
