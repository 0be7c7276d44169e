"""docs/cli.md names every command."""

import re
from pathlib import Path

from forge.cli.commands import COMMANDS

PAGE = (Path(__file__).parents[1] / "docs" / "cli.md").read_text(encoding="utf-8")


def test_every_command_is_there() -> None:
    (block,) = re.findall(r"^```sh\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
    named = {line.split()[1] for line in block.splitlines()}
    assert {command.name for command in COMMANDS} - named == {"bisect", "ablate"}, "those two stand in journal.md"
