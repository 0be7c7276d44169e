"""Journals for tests: lines of JSON as a file that was written by forge."""

from forge.journal.lines import with_checksum


def journal_of(*lines: bytes) -> bytes:
    """The content of a journal that has these lines, each with its checksum."""
    content, check = b"", ""
    for line in lines:
        whole, check = with_checksum(line, check)
        content += whole
    return content
