"""Whether a type checker takes the programs of README and docs as a user types them: each page as one module."""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / ".venv" / "pages"

_GIVEN = {"servers": "from forge.cli.demo import workflow"}
"""What a page takes from the README, in its first line, which has no program."""


def main() -> int:
    """Write each page's Python blocks into one module, and have mypy read them all at once; its exit code."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    for old in FOLDER.glob("*.py"):
        old.unlink()
    for page in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))):
        text = page.read_text(encoding="utf-8")
        if re.search(r"^```python$", text, re.MULTILINE):
            (FOLDER / f"page_{page.stem.lower()}.py").write_text(_program(page.stem, text), encoding="utf-8")
    command = [
        sys.executable,
        "-m",
        "mypy",
        "--no-warn-unreachable",
        "--no-error-summary",
        *map(str, sorted(FOLDER.glob("*.py"))),
    ]
    return subprocess.run(command, cwd=ROOT, check=False).returncode  # noqa: S603 - nothing that anybody gives it


def _program(page: str, text: str) -> str:
    """The lines of the Python blocks, each where it stands in the page, so that an error names the page's line."""
    lines, inside = list[str](), False
    for line in text.splitlines():
        if line.startswith("```"):
            inside = line == "```python"
            lines.append("")
        else:
            lines.append(line if inside else "")
    lines[0] = _GIVEN.get(page, "")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(main())
