"""The examples of docs/tools.md are executed, one after the other in one namespace; its commands exist."""

import re
from pathlib import Path

from forge.cli.commands import parse

PAGE = Path(__file__).parents[1] / "docs" / "tools.md"


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)


def test_the_examples_hold() -> None:
    namespace: dict[str, object] = {"__name__": "tools"}
    for block in blocks("python"):
        exec(compile(block, str(PAGE), "exec"), namespace)  # noqa: S102 - the project's own page
    assert len(blocks("python")) == 4


def test_the_commands_exist() -> None:
    lines = [line for block in blocks("sh") for line in block.splitlines()]
    for line in lines:
        words = [quoted or plain for quoted, plain in re.findall(r'"([^"]*)"|(\S+)', line)]
        parse(words[1:])
    assert len(lines) == 2
