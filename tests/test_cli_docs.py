"""The commands of docs/cli.md exist, and its table of exit codes names those that there are."""

import re
import shlex
from pathlib import Path

from forge.cli.commands import COMMANDS, parse

PAGE = (Path(__file__).parents[1] / "docs" / "cli.md").read_text(encoding="utf-8")


def test_the_commands_exist() -> None:
    (block,) = re.findall(r"^```sh\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
    lines = [line.split("  #")[0].split(" > ")[0] for line in block.splitlines()]
    for line in lines:
        parse(shlex.split(line)[1:])
    named = {shlex.split(line)[1] for line in lines}
    assert {command.name for command in COMMANDS} - named == {"bisect", "ablate"}, "those two stand in journal.md"
