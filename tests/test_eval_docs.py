"""The examples of docs/evals.md are executed, one after the other in one namespace; its names exist."""

import re
import tomllib
from pathlib import Path

import msgspec

from forge.cli.eval_run import EvalOptions
from forge.evals.configurations import ABLATIONS, COMPACTORS, THINKING
from forge.evals.evaluation import MODES

PAGE = Path(__file__).parents[1] / "docs" / "evals.md"
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)


def test_the_examples_hold() -> None:
    namespace: dict[str, object] = {"__name__": "evals"}
    for code in [code for language, code in BLOCKS if language == "python"]:
        exec(compile(code, str(PAGE), "exec"), namespace)  # noqa: S102 - the project's own page


def test_the_file_of_models_is_one() -> None:
    (code,) = [code for language, code in BLOCKS if language == "toml"]
    assert len(msgspec.convert(tomllib.loads(code), EvalOptions).model) == 2


def test_every_name_of_an_axis_is_in_its_row() -> None:
    table = {line.split("`")[1]: line for line in PAGE.read_text().splitlines() if line.startswith("| `--")}
    axes = {"--mode": MODES, "--ablation": ABLATIONS, "--compact": COMPACTORS, "--think": THINKING}
    for option, names in axes.items():
        assert set(re.findall(r"`(\w+)`", table[option])) - {"reasoning_effort"} == {*names}
