"""`forge eval bfcl`: the questions and conversations of the Berkeley Function Calling Leaderboard."""

import argparse

from forge.cli.console import Console
from forge.cli.eval_options import eval_options
from forge.cli.eval_run import carried_out
from forge.cli.eval_scenarios import Chosen
from forge.evals.bfcl import CATEGORIES, Checker, ensure_package, players, scenarios
from forge.evals.selection import picked


def run_bfcl(given: argparse.Namespace) -> int:
    """Play the categories; 1 if the server is lost on the way."""
    options = eval_options(given)
    names: tuple[str, ...] = getattr(given, "category", ())
    for name in names:
        picked(CATEGORIES, name, "--category")
    checker = Checker(ensure_package())
    every = scenarios(checker, names or CATEGORIES)
    return carried_out(options, Chosen(scenarios=every, players=players(checker)), Console(highlight=False))
