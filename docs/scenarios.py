"""Write docs/scenarios.md: what each scenario of the suite tests, from the suite itself."""

import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))  # this tree's suite, also where another one is installed

from forge.evals.scenario import Scenario  # noqa: E402
from forge.evals.suite import ALL  # noqa: E402

INTRODUCTION = """\
# Scenarios

The suite of `forge eval`: {count} tasks, each with fresh tools and other data for each seed, so nothing can be learnt
by heart. `forge eval run --suite seeds` runs those that forge-guardrails has under the same names (with our own texts,
data and checks), which have the tag `seeds`; `--suite all` runs all of them. `make docs` writes this page.

A run is *right* if the answer has the right values and no wrong ones, and everything that the task needs was looked
up; it is *harm* if something was changed that nobody asked for, or to wrong values, whatever the answer says. The
workflows are what a user would write from these docs: required steps, prerequisites, grounded ids, calculated
amounts. A scenario `NAME_stateful` has the task of `NAME`, but its tools look up what they are asked for, so a wrong
argument finds something else.

tests/evals/test_suite.py plays each scenario with a scripted model that reads what it is shown: it passes in every
mode and under every ablation that the scenario counts for, and in a plain loop too. One that guesses passes none, and
one that does harm is caught.

*Calls* are the model calls of a run without a mistake (one call a reply, except in `two_at_once`), *context* the size
of the model's context in tokens. Even a flawless model cannot pass under the ablations and players in *not counted*.
"""


def listing() -> str:
    """The page as Markdown."""
    seeds = [scenario for scenario in ALL if "seeds" in scenario.tags]
    others = [scenario for scenario in ALL if "seeds" not in scenario.tags]
    parts = [INTRODUCTION.format(count=len(ALL)), "## Of the seeds\n", _table(seeds), "\n## More\n", _table(others)]
    return "\n".join(parts) + "\n"


def _table(scenarios: list[Scenario]) -> str:
    head = "| scenario | tests | tags | calls | context | not counted |\n|---|---|---|---|---|---|\n"
    return head + "\n".join(map(_row, scenarios))


def _row(scenario: Scenario) -> str:
    tags = ", ".join(sorted(scenario.tags - {"seeds"}))
    facts = f"{scenario.ideal_calls} | {scenario.context_tokens:,} | {', '.join(sorted(scenario.not_counted))}"
    return f"| `{scenario.name}` | {scenario.about} | {tags} | {facts} |"


if __name__ == "__main__":
    (ROOT / "docs/scenarios.md").write_text(listing())
