"""Write from docstrings: what each file of the two packages is (docs/MAP.md), a profile's fields (docs/backends.md)."""

import ast
import re
from itertools import pairwise
from pathlib import Path

ROOT = Path(__file__).parent.parent


def sentence(path: Path) -> str:
    """The first line of the module's docstring. ValueError where there is none."""
    written = ast.get_docstring(ast.parse(path.read_text()))
    if not written:
        raise ValueError(f"{path.relative_to(ROOT)} has no docstring, whose first line is its line in docs/MAP.md")
    return written.split("\n")[0]


def rooms(package: Path) -> list[str]:
    """Each room with its first sentence, then its modules with theirs."""
    lines = []
    for init in sorted(path for path in package.rglob("__init__.py") if path.parent != package):
        lines += ["", f"### {init.parent.relative_to(ROOT)}/", "", sentence(init), ""]
        modules = sorted(path for path in init.parent.glob("*.py") if not path.stem.startswith("_"))
        lines += [f"- `{path.name}` {sentence(path)}" for path in modules]
    return lines


def listing() -> str:
    """The map as Markdown."""
    lines = [
        "# Map",
        "",
        "For each package, the files at its top, then its rooms (folders) with theirs. Written by `make docs`.",
        "[CONTRIBUTING.md](../CONTRIBUTING.md) says where to add what.",
    ]
    for package in ("stages", "forge"):
        top = sorted(path for path in (ROOT / package).glob("*.py") if path.stem[0] != "_" or path.stem == "__main__")
        lines += ["", f"## {package}/", "", sentence(ROOT / package / "__init__.py"), ""]
        lines += [f"- `{path.name}` {sentence(path)}" for path in top]
        lines += rooms(ROOT / package)
    return "\n".join(lines) + "\n"


def fields(path: Path, name: str) -> list[str]:
    """A row of a table for each field of that class, with its docstring."""
    body = next(node.body for node in ast.parse(path.read_text()).body if getattr(node, "name", "") == name)
    pairs = [
        (field.target.id, re.sub(r"docs/((\w+)[.]md)", r"[\2](\1)", " ".join(text.value.value.split())))
        for field, text in pairwise(body)
        if isinstance(field, ast.AnnAssign) and isinstance(text, ast.Expr)
    ]
    return [f"| `{field}` | {text} |" for field, text in pairs]


def backends() -> str:
    """docs/backends.md with the fields of a profile: those of its dialect, then its own."""
    rows = fields(ROOT / "stages/wire/wires.py", "Dialect") + fields(ROOT / "forge/backends/profile.py", "Profile")
    head, start, rest = (ROOT / "docs/backends.md").read_text().partition("| field | meaning |\n|---|---|\n")
    return head + start + "\n".join(rows) + "\n" + re.sub(r"\A(\|.*\n)*", "", rest)


if __name__ == "__main__":
    (ROOT / "docs/backends.md").write_text(backends())
    (ROOT / "docs/MAP.md").write_text(listing())
