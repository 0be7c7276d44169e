"""`import forge` loads what every run needs, and no more."""

import subprocess
import sys

import pytest

import forge

HEAVY = (
    "anthropic",
    "csv",
    "dataclasses",
    "difflib",
    "docstring_parser",
    "email",
    "httpx",
    "hypothesis",
    "importlib.metadata",
    "jinja2",
    "jsonschema_rs",
    "platformdirs",
    "rich",
    "stages.rescue.families",
    "tempfile",
    "zipfile",
)


def test_import_loads_nothing_that_is_slow() -> None:
    # asyncio and msgspec are needed by every run; what they bring along is theirs.
    code = f"""
import sys, asyncio, msgspec
before = set(sys.modules)
import forge
print(*sorted((sys.modules.keys() - before) & {set(HEAVY)!r}))
"""
    said = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert said.stdout.split() == []


def test_every_public_name_is_there() -> None:
    code = "import forge.recovery; from forge import *; print(callable(forge.replay), replay.__name__, Redact.__name__)"
    said = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert said.stdout.split() == ["True", "replay", "Redact"]
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = forge.nothing  # type: ignore[attr-defined]  # that it is not there is what is tested
