"""The examples of docs/journal.md are executed, one after the other in one namespace; its commands exist."""

import re
import shlex
from pathlib import Path

from forge.cli.commands import parse

PAGE = Path(__file__).parents[1] / "docs" / "journal.md"
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)


def test_the_examples_hold() -> None:
    namespace: dict[str, object] = {"__name__": "journal"}
    blocks = [code for language, code in BLOCKS if language == "python"]
    assert len(blocks) == 6
    for block in blocks:
        exec(compile(block, str(PAGE), "exec"), namespace)  # noqa: S102 - the project's own page


def test_the_commands_exist() -> None:
    lines = [line for language, code in BLOCKS if language == "sh" for line in code.splitlines()]
    assert len(lines) == 6
    for line in lines:
        parse(shlex.split(line, comments=True)[1:])  # exits where a command or an option is not there
