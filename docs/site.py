"""Build the site of all documents into site/: README, docs, examples, what was measured, and the API.

Run as `python docs/site.py`; zensical.toml has its pages in their order. It fails where a link or an anchor leads
nowhere. Nothing on the site is fetched from another host.
"""

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
PAGES = ROOT / ".venv" / "site"
"""The pages as they stand in the repository, so that their links to one another hold."""

API = (
    "forge",
    "forge.agent",
    "forge.agent.memory",
    "forge.backends",
    "forge.connection",
    "forge.durable",
    "forge.errors",
    "forge.evals",
    "forge.evals.statistics",
    "forge.guardrails",
    "forge.journal",
    "forge.mcp",
    "forge.outcome",
    "forge.proxy",
    "forge.runtime.runs",
    "forge.runtime.watching",
    "forge.serve",
    "forge.telemetry",
    "forge.testing",
    "forge.tools",
    "stages",
    "stages.compaction",
    "stages.confidence",
    "stages.effect",
    "stages.events",
    "stages.guards",
    "stages.halt",
    "stages.memory",
    "stages.message",
    "stages.nudges",
    "stages.objection",
    "stages.offer",
    "stages.rescue",
    "stages.rules",
    "stages.saved",
    "stages.state",
    "stages.tool",
    "stages.view",
    "stages.wire",
)
"""The modules that programs import from."""

_LINK = re.compile(r"(\]\()([^):#\s]+)((?:#[^)]+)?\))")


def documents() -> Iterator[Path]:
    """Every page in the repository that users or contributors read."""
    yield from (ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "examples/README.md"))
    yield from sorted((ROOT / "docs").glob("*.md"))
    yield from sorted((ROOT / "benchmarks").glob("*.md"))
    yield from sorted((ROOT / "benchmarks").glob("*/README.md"))


def laid_out(document: Path) -> str:
    """The page, with links to source files leading to pages that show them, which are made on the way."""

    def link(match: re.Match[str]) -> str:
        target = (document.parent / match[2]).resolve()
        if target == ROOT / "README.md":
            return match[1] + match[2].replace("README.md", "index.md") + match[3]
        if target.suffix == ".md" or not target.is_file():
            return match[0]
        if target.suffix != ".py":
            _at(target).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(target, _at(target))
            return match[0]
        shown = target.with_suffix(".md")
        _write(shown, f"# {target.relative_to(ROOT)}\n\n```python\n{target.read_text(encoding='utf-8')}```\n")
        return match[1] + match[2].removesuffix(".py") + ".md" + match[3]

    return _LINK.sub(link, document.read_text(encoding="utf-8"))


def _at(path: Path) -> Path:
    return PAGES / path.relative_to(ROOT)


def _write(path: Path, text: str) -> None:
    _at(path).parent.mkdir(parents=True, exist_ok=True)
    _at(path).write_text(text, encoding="utf-8")


def lay_out() -> None:
    """Write all pages anew."""
    shutil.rmtree(PAGES, ignore_errors=True)
    for document in documents():
        _write(ROOT / "index.md" if document == ROOT / "README.md" else document, laid_out(document))
    rows = []
    for name in API:
        path = ROOT / Path(*name.split("."))
        source = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
        first = source.read_text(encoding="utf-8").removeprefix('"""').split("\n")[0].removesuffix('"""')
        rows.append(f"| [{name}]({name}.md) | {first} |")
        _write(ROOT / "reference" / f"{name}.md", f"# {name}\n\n::: {name}\n")
    _write(ROOT / "reference" / "index.md", "# API\n\n| module | |\n|---|---|\n" + "\n".join(rows) + "\n")


def main() -> int:
    """Lay the pages out and build the site; the builder's exit code."""
    lay_out()
    shutil.rmtree(ROOT / "site", ignore_errors=True)
    command = [sys.executable, "-m", "zensical", "build", "--clean", "--strict"]
    return subprocess.run(command, cwd=ROOT, check=False).returncode  # noqa: S603 - nothing that anybody gives it


if __name__ == "__main__":
    sys.exit(main())
