"""The documents keep what they promise: every Python block of the README runs, the map names every file."""

import re
import runpy
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

from forge import Scripted, run_sync
from forge.telemetry import names as telemetry_names
from stages.message import Assistant, Tool
from stages.state import State

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
DOCUMENTS = [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"), ROOT / "benchmarks/evals/README.md"]
_FENCED = re.compile(r"^```.*?^```", re.DOTALL | re.MULTILINE)
BLOCKS = re.findall(r"```(\w+)\n(.*?)```", README, re.DOTALL)


def test_every_python_block_of_the_readme_runs_one_after_the_other() -> None:
    """As a newcomer would paste them: later blocks use what earlier ones defined."""
    names: dict[str, object] = {"__name__": "readme"}
    blocks = [code for language, code in BLOCKS if language == "python"]
    assert len(blocks) == 5
    for code in blocks:
        exec(compile(code, "README.md", "exec"), names)  # noqa: S102 - our own README


def test_the_readme_shows_what_its_workflow_does_with_what_the_model_wrote() -> None:
    code, shown = (next(code for of, code in BLOCKS if of == language) for language in ("python", "text"))
    names: dict[str, Any] = {}
    exec(code, names)  # noqa: S102 - our own README
    run = next(code for of, code in BLOCKS if of == "text" and "said" in code)
    said = re.findall(r"^ +said +(.*)$", run, re.MULTILINE)
    ended = run_sync(names["workflow"], "Report on order A-17", backend=Scripted(said)).unwrap()
    assert ended.value == "Report sent: 129.9"
    calls = [one for message in ended.state.history if isinstance(message, Assistant) for one in message.calls]
    results = [message.text for message in ended.state.history if isinstance(message, Tool)]
    assert re.findall(r"^ +runs +(.*)$", run, re.MULTILINE) == [f"{one.name} {one.arguments}" for one in calls]
    assert re.findall(r"^ +result +(.*)$", run, re.MULTILINE) == results
    assert [line.split("  ")[0] for line in shown.splitlines()] == [f"{one.name} {one.arguments}" for one in calls]


def test_no_block_is_in_a_language_that_is_not_tested() -> None:
    assert {language for language, _ in BLOCKS} == {"python", "sh", "json", "text"}


def test_links_lead_somewhere() -> None:
    for document in DOCUMENTS:
        prose = _FENCED.sub("", document.read_text())
        for link, heading in re.findall(r"\]\(([^):#\s]*)(?:#([^)]+))?\)", prose):
            to = document.parent / link if link else document
            assert to.exists(), f"{document.name}: {link}"
            assert not heading or heading in headings(to), f"{document.name}: {link}#{heading}"


def test_names_in_the_pages_exist() -> None:
    attributes = {v for v in (*vars(telemetry_names).values(), *telemetry_names.NOTICES.values()) if isinstance(v, str)}
    for document in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("*.md")]:
        text = document.read_text()
        for name in re.findall(r"\b(?:forge|stages)(?:\.\w+)+", text):
            if name != "forge.bash" and name not in attributes:
                resolve_name(name)
        for name in re.findall(r"`state\.(?!py`)(\w+)", text):
            assert hasattr(State, name), f"{document.name}: state.{name}"


def headings(document: Path) -> set[str]:
    """The headings of a page as links name them."""
    found = re.findall(r"^#+ (.*)$", _FENCED.sub("", document.read_text()), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in found}


def test_the_map_is_up_to_date_and_every_file_says_what_it_is() -> None:
    made = runpy.run_path(str(ROOT / "docs/map.py"))
    listing = made["listing"]()
    for page, text in (("MAP", listing), ("backends", made["backends"]())):
        assert (ROOT / f"docs/{page}.md").read_text() == text, "run: make docs"
    assert not re.findall(r"` +(\*|$)", listing, re.MULTILINE)
