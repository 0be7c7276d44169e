"""`forge eval check`: whether new results are significantly worse than a baseline; 1 if they are."""

import argparse

from rich.text import Text

from forge.cli.console import Console
from forge.cli.eval_results import shown_rows
from forge.evals.check import check_against
from forge.evals.comparison import sentence

_COLOURS = {"better": "green", "worse": "red"}


def run_check(options: argparse.Namespace) -> int:
    """Compare two files of results, and say what has changed."""
    checked = check_against(
        shown_rows([options.file]),
        shown_rows([options.against]),
        name=options.configuration,
        baseline_name=options.baseline_configuration,
        alpha=options.alpha,
    )
    console = Console(highlight=False)
    for one in checked.told:
        console.print(Text(sentence(one), style=_COLOURS.get(one.finding, "")), soft_wrap=True)
    for note in checked.notes:
        console.print(Text(f"note: {note}", style="yellow"), soft_wrap=True)
    lost = "1 significant loss" if len(checked.losses) == 1 else f"{len(checked.losses)} significant losses"
    console.print(Text(f"{lost}." if checked.losses else "No significant loss.", style="bold"), soft_wrap=True)
    return 1 if checked.losses else 0
