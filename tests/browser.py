"""Debian's Chromium, found by its path, for the tests of pages."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from playwright.sync_api import Browser, sync_playwright

_QUIET = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync"
)


@contextmanager
def chromium() -> Iterator[Browser]:
    """The browser, which asks nothing of the network by itself."""
    path = shutil.which("chromium")
    if path is None:
        pytest.fail("these tests need Chromium, which this machine does not have: apt-get install chromium")
    with sync_playwright() as playwright, playwright.chromium.launch(executable_path=path, args=_QUIET.split()) as made:
        yield made
