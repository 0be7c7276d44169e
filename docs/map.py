"""Write docs/MAP.md: every file of the two packages in one line, from the first line of its docstring."""

import ast
from pathlib import Path

ROOT = Path(__file__).parent.parent


def sentence(path: Path) -> str:
    """The first line of the module's docstring; empty where there is none."""
    return (ast.get_docstring(ast.parse(path.read_text())) or "").split("\n")[0]


def listing() -> str:
    """The map as Markdown."""
    lines = ["# Every file in one line", "", "Written by `make docs` from the files themselves."]
    for package in ("stages", "forge"):
        lines += ["", f"## {package}/", ""]
        paths = sorted((ROOT / package).rglob("*.py"), key=lambda p: (len(p.parts) > 1, p.parent, p.name))
        lines += [f"- `{path.relative_to(ROOT)}`: {sentence(path)}" for path in paths]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    (ROOT / "docs/MAP.md").write_text(listing())
