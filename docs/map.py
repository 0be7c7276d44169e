"""Write docs/MAP.md: what each file of the two packages is, from the first lines of their docstrings."""

import ast
from pathlib import Path

ROOT = Path(__file__).parent.parent


def sentence(path: Path) -> str:
    """The first line of the module's docstring; empty where there is none."""
    return (ast.get_docstring(ast.parse(path.read_text())) or "").split("\n")[0]


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


if __name__ == "__main__":
    (ROOT / "docs/MAP.md").write_text(listing())
