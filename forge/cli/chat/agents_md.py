"""AGENTS.md of the working folder: what a project tells agents of itself, bounded in size."""

from pathlib import Path

from msgspec import Struct

from forge.cli.plain import readable
from forge.errors import ForgeError

NAME = "AGENTS.md"


class ProjectNotes(Struct, frozen=True):
    """What was read of the file, and a sentence about it for the user."""

    text: str
    told: str


def project_notes(folder: Path, most: int) -> ProjectNotes | None:
    """The first `most` characters of the folder's AGENTS.md; None: it has none. ForgeError if it cannot be read."""
    path = folder / NAME
    if not path.exists():
        return None
    if not path.is_file() or not path.resolve().is_relative_to(folder.resolve()):
        raise ForgeError(f"{path} is not a file of this folder; leave it out with --no-agents-md")
    try:
        with path.open("rb") as file:
            # A character takes up to four bytes; one more than fits tells that there is more.
            found = file.read(4 * most + 4).decode(errors="replace")
    except OSError as error:
        raise ForgeError(f"{path} cannot be read: {error.strerror}; leave it out with --no-agents-md") from None
    text = readable(found[:most]).strip()
    if len(found) > most:
        return ProjectNotes(text, f"the first {most:,} characters of {NAME}; there are more")
    return ProjectNotes(text, f"{NAME}, {len(text):,} characters") if text else None


def room(context_tokens: int) -> int:
    """Characters of it that a prompt has room for: about a quarter of the context, where that is known."""
    return min(_MOST, context_tokens) if context_tokens else _UNKNOWN


_MOST, _UNKNOWN = 32_000, 8_000
