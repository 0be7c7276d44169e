"""The pages as tests read them: a page's text, its blocks, and its programs run as somebody would paste them."""

import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]


def page(name: str) -> str:
    return (ROOT / "docs" / f"{name}.md").read_text(encoding="utf-8")


def blocks(text: str, language: str) -> list[str]:
    """The blocks of that language."""
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.DOTALL | re.MULTILINE)


def block(name: str, language: str) -> str:
    """The one block of that language on the page."""
    (found,) = blocks(page(name), language)
    return found


def pasted(name: str, *, at: str = "", **names: Any) -> dict[str, Any]:
    """What the page's programs define, run one after the other, from these names on, with a server at that address."""
    text = page(name).replace("http://127.0.0.1:8080", at or "http://127.0.0.1:8080")
    text = re.sub(r"max_examples=\d+", "max_examples=10", text)
    programs = blocks(text, "python")
    assert len(programs) == text.count("```python") > 0
    for program in programs:
        exec(compile(program, f"{name}.md", "exec"), names)  # noqa: S102 - the project's own page
    return names
