"""The site has every page and every module that users import; no docstring names what is not there."""

import re
import runpy
import tomllib
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
SITE = runpy.run_path(str(ROOT / "docs" / "site.py"))
CONFIG: dict[str, Any] = tomllib.loads((ROOT / "zensical.toml").read_text())["project"]
NAMED = re.compile(r"`((?:forge|stages)(?:\.\w+)+)(?:\(.*?\))?`")


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All pages as the builder is given them."""
    folder = tmp_path_factory.mktemp("site")
    SITE["lay_out"].__globals__["PAGES"] = folder
    SITE["lay_out"]()
    return folder


def leaves(nav: list[dict[str, Any]]) -> list[str]:
    """The pages of the navigation, in order."""
    values = [value for entry in nav for value in entry.values()]
    return [page for value in values for page in (leaves(value) if isinstance(value, list) else [value])]


def test_the_navigation_has_every_page_once(pages: Path) -> None:
    named = leaves(CONFIG["nav"])
    assert [page for page in named if not (pages / page).is_file()] == []
    written = {str(path.relative_to(ROOT)) for path in SITE["documents"]() if path.name != "README.md"}
    assert written - {*named} == set()
    assert len(named) == len({*named})


def test_links_of_pages_that_were_laid_out_lead_somewhere(pages: Path) -> None:
    prose = (
        (path, re.sub(r"^```.*?^```", "", path.read_text(), flags=re.DOTALL | re.MULTILINE))
        for path in pages.rglob("*.md")
    )
    links = [(path, link) for path, text in prose for link in re.findall(r"\]\(([^):#\s]+)(?:#[^)]+)?\)", text)]
    assert [(path.name, link) for path, link in links if not (path.parent / link).exists()] == []
    assert len(links) > 200


def test_no_font_is_fetched_and_every_module_of_the_reference_is_there(pages: Path) -> None:
    assert CONFIG["theme"]["font"] is False
    listed = (pages / "reference" / "index.md").read_text()
    for name in SITE["API"]:
        resolve_name(name)
        assert f"[{name}]({name}.md)" in listed


def test_every_module_that_a_page_imports_from_is_in_the_reference() -> None:
    blocks = [
        block
        for page in (ROOT / "docs").glob("*.md")
        for block in re.findall(r"^```python\n(.*?)^```", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    ]
    rooms = {*re.findall(r"^from ((?:forge|stages)\S*) import", "\n".join(blocks), re.MULTILINE)}
    parts = {name for name in rooms if not any(name == known or name.startswith(f"{known}.") for known in SITE["API"])}
    assert parts == set()


def test_every_dotted_name_in_a_docstring_is_there() -> None:
    lost = [
        f"{path.relative_to(ROOT)}: {name}"
        for package in ("forge", "stages")
        for path in sorted((ROOT / package).rglob("*.py"))
        for name in NAMED.findall(path.read_text(encoding="utf-8"))
        if not name.endswith(".py") and not found(name)
    ]
    assert not lost


def found(name: str) -> bool:
    """Whether the name is a module, or something in one, such as a field of a class."""
    try:
        resolve_name(name)
    except (ImportError, AttributeError):
        owner, _, last = name.rpartition(".")
        try:
            return last in getattr(resolve_name(owner), "__annotations__", {})
        except (ImportError, AttributeError, ValueError):
            return False
    return True
