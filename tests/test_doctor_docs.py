"""docs/doctor.md: its examples run, on a server of the tests; its numbers are right."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from forge.backends.doctor import PROBES
from forge.backends.doctor.examination import FRESH, SHORT
from tests.patients import patients

PAGE = (Path(__file__).parents[1] / "docs" / "doctor.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)


@pytest.fixture
def server() -> Iterator[str]:
    with patients() as url:
        yield f"{url}/llama/v1"


def test_the_examples_hold(server: str, capsys: pytest.CaptureFixture[str]) -> None:
    namespace: dict[str, object] = {"__name__": "doctor"}
    blocks = [code for language, code in BLOCKS if language == "python"]
    assert len(blocks) == 2
    for block in blocks:
        exec(compile(block.replace("http://127.0.0.1:8080", server), "doctor.md", "exec"), namespace)  # noqa: S102
    assert capsys.readouterr().out == "text True\nconstrained json_schema\n"


def test_every_topic_is_in_the_table() -> None:
    for probe in PROBES:
        assert probe.topic.split(" by ")[0].split(" ")[0] in PAGE, probe.topic


def test_the_numbers_of_auto_are_right() -> None:
    assert f"at most seven questions with at most {sum(p.tokens for p in SHORT)} reply tokens" in PAGE
    assert len(SHORT) == 7
    assert (FRESH.days, "seven days" in PAGE) == (7, True)
