"""`make docs` covers every module, and finds what leads nowhere; no docstring names what is not there."""

import ast
import re
import runpy
from pathlib import Path

ROOT = Path(__file__).parents[1]
API = runpy.run_path(str(ROOT / "docs" / "api.py"))
NAMED = re.compile(r"`((?:forge|stages)(?:\.\w+)+)(?:\(.*?\))?`")


def test_every_module_has_a_page() -> None:
    files = {path for package in ("forge", "stages") for path in (ROOT / package).rglob("*.py")}
    assert len(API["modules"]()) == len([path for path in files if path.name[0] != "_" or path.name == "__init__.py"])
    assert {"forge", "forge.runtime.runs", "forge.backends.server", "stages.wire.openai.chat"} <= {*API["modules"]()}


def test_every_dotted_name_in_a_docstring_is_there() -> None:
    lost = [
        f"{path.relative_to(ROOT)}: {name}"
        for package in ("forge", "stages")
        for path in sorted((ROOT / package).rglob("*.py"))
        for name in NAMED.findall(path.read_text(encoding="utf-8"))
        if not name.endswith(".py") and not API["_exists"](name)
    ]
    assert not lost


def test_what_leads_nowhere_is_found(tmp_path: Path) -> None:
    page = """<p id="here"><code>forge.runtime.runs.resume</code> <code>forge.runtime.runs.nothing</code>
    <code>stages.none.at_all</code>
    <a href="#here">1</a> <a href="#gone">2</a> <a href="other.html">3</a> <a href="https://example.org/#x">4</a></p>
    <script>`<a href="${url}">`</script>"""
    (tmp_path / "page.html").write_text(page)
    assert [*API["unresolved"](tmp_path)] == [
        "page.html: forge.runtime.runs.nothing is not there",
        "page.html: stages.none.at_all is not there",
        *sorted(("page.html: there is no gone on the page itself", "page.html: there is no page other.html")),
    ]


def test_pages_are_made_without_a_warning(tmp_path: Path) -> None:
    assert API["write"](tmp_path, ["forge.runtime.conversation", "forge.workflow.checks"]) == []
    assert "nearest" in (tmp_path / "forge" / "workflow" / "checks.html").read_text(encoding="utf-8")


def test_no_public_class_has_members_of_a_class_without_a_page() -> None:
    hidden = [
        f"{path.relative_to(ROOT)}: {node.name}({base.id})"
        for package in ("forge", "stages")
        for path in sorted((ROOT / package).rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
        for base in node.bases
        if isinstance(base, ast.Name) and base.id.startswith("_")
    ]
    assert not hidden, "the pages of these lead to members of a class that has no page"
