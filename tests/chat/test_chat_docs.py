"""docs/chat.md: its agent is one, its tables are those of the program."""

import re
from pathlib import Path

from forge.cli.chat.slash import HELP
from forge.cli.run import load_agent

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "chat.md").read_text(encoding="utf-8")


def test_its_agent_is_loaded(tmp_path: Path) -> None:
    (code,) = re.findall(r"^```python\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
    (tmp_path / "shop.py").write_text(code)
    agent = load_agent(f"{tmp_path / 'shop.py'}:agent")
    assert agent.workflow.rules.tools[0].approval


def test_it_has_every_command_and_no_other() -> None:
    named = re.findall(r"^\| `/(\w+)(?: ([^`]+))?` \|", PAGE, re.MULTILINE)
    assert named == [(name, one.argument) for name, one in HELP.items()]


def test_its_links_lead_somewhere() -> None:
    for link in re.findall(r"\]\(([^)#:]+)[)#]", PAGE):
        assert (DOCS / link).exists(), link
