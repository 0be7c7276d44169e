"""The examples of docs/mcp.md run, and its configuration and its table name what there is."""

import json
import re
from pathlib import Path

from forge.cli.commands import parse
from forge.mcp import Http, Stdio

PAGE = (Path(__file__).parents[2] / "docs" / "mcp.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)


def test_the_examples_hold() -> None:
    namespace: dict[str, object] = {"__name__": "mcp_page"}
    for block in blocks("python"):
        exec(compile(block, "docs/mcp.md", "exec"), namespace)  # noqa: S102 - the project's own page
    assert len(blocks("python")) == 2


def test_the_command_of_the_configuration_exists() -> None:
    (config,) = blocks("json")
    parse(json.loads(config)["mcpServers"]["support"]["args"])


def test_the_table_names_the_options_of_servers_with_their_defaults() -> None:
    named = dict(re.findall(r"^\| `(\w+)=([^`]+)` \|", PAGE, re.MULTILINE))
    common = {*Stdio.__struct_fields__} & {*Http.__struct_fields__}
    assert named.keys() == common
    server = Stdio(["x"])
    assert {name: named[name] for name in ("timeout", "connect_timeout", "message_limit")} == {
        name: str(round(getattr(server, name))) for name in ("timeout", "connect_timeout", "message_limit")
    }
