"""`forge eval list`: the scenarios there are to choose from."""

import argparse

import msgspec
from rich.text import Text

from forge.cli.console import Console
from forge.cli.eval_scenarios import chosen
from forge.cli.layout import LabelledText, show
from forge.errors import quantity
from forge.evals.scenario import Scenario


def run_scenario_list(options: argparse.Namespace) -> int:
    """List the scenarios with their tags, and what each is about."""
    scenarios = chosen(options.files, options.suite, options.scenario or (), options.tags or ()).scenarios
    if options.json:
        print(msgspec.json.encode([_facts(scenario) for scenario in scenarios]).decode())
        return 0
    console = Console(highlight=False)
    for scenario in scenarios:
        console.print(Text.assemble((scenario.name, "bold"), f"   {scenario.about}"), soft_wrap=True)
        facts = f"{quantity(scenario.ideal_calls, 'call')}, {scenario.context_tokens:,} tokens of context"
        show(console, LabelledText("tags", f"{', '.join(sorted(scenario.tags)) or 'none'} ({facts})", style="dim"))
    return 0


def _facts(scenario: Scenario) -> dict[str, object]:
    return {
        "name": scenario.name,
        "about": scenario.about,
        "tags": sorted(scenario.tags),
        "ideal_calls": scenario.ideal_calls,
        "context_tokens": scenario.context_tokens,
        "not_counted": sorted(scenario.not_counted),
    }
