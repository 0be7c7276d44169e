"""The questions of BFCL and their players, for `python -m forge eval run benchmarks/bfcl/questions.py`."""

from benchmarks.bfcl import CATEGORIES, Checker, ensure_package, players, scenarios

_CHECKER = Checker(ensure_package())
SCENARIOS = scenarios(_CHECKER, CATEGORIES)
PLAYERS = tuple(players(_CHECKER).values())
