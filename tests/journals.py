"""Journals for tests: lines of JSON as a file that was written by forge, and a disk that is full."""

import resource
from collections.abc import Iterator
from contextlib import contextmanager

from forge.journal.records import with_checksum


def journal_of(*lines: bytes) -> bytes:
    """The content of a journal that has these lines, each with its checksum."""
    content, check = b"", ""
    for line in lines:
        whole, check = with_checksum(line, check)
        content += whole
    return content


@contextmanager
def room(size: int) -> Iterator[None]:
    """No file grows beyond that: what a full disk does to a journal."""
    _, hard = before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
