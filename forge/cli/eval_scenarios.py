"""The scenarios and players that a command of `forge eval` is told to choose."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeVar

from msgspec import Struct

from forge.cli.load import imported
from forge.errors import ForgeError
from forge.evals.forge_player import FORGE
from forge.evals.plain_player import PLAIN
from forge.evals.player import Player
from forge.evals.scenario import Scenario
from forge.evals.selection import chosen_scenarios
from forge.evals.suite import SUITES
from forge.workflow.suggestions import did_you_mean

_T = TypeVar("_T")


class Chosen(Struct, frozen=True, kw_only=True):
    """Scenarios, and players by name."""

    scenarios: tuple[Scenario, ...]
    players: Mapping[str, Player]


def chosen(files: Iterable[str], suite: str | None, names: Sequence[str], tags: Sequence[str]) -> Chosen:
    """The scenarios of the files, else of forge's own suite, by name and tag. ForgeError for what is not there.

    `suite` is one of forge's own, or one more file.
    """
    scenarios: list[Scenario] = []
    players = {player.name: player for player in (FORGE, PLAIN)}
    if suite is not None and suite not in SUITES:
        files, suite = (*files, _suite_file(suite)), None
    for file in dict.fromkeys(files):
        defined = vars(imported(file, "scenarios into a file FILE.py"))
        own, others = values_of(defined, Scenario), values_of(defined, Player)
        if not own and not others:
            raise ForgeError(f"{file} has no scenario; it needs a line like: orders = Scenario(name=…) (docs/evals.md)")
        scenarios += own
        players |= {player.name: player for player in others}
    if suite or not scenarios:
        scenarios += SUITES[suite or "all"]
    return Chosen(scenarios=chosen_scenarios(scenarios, names, tags), players=players)


def _suite_file(suite: str) -> str:
    """The file that a suite is which is none of forge's own. ForgeError if it is no name of one."""
    if not suite.endswith(".py"):
        meant = did_you_mean(suite, SUITES)
        raise ForgeError(f"there is no suite {suite!r}; there are: {', '.join(SUITES)}, and files FILE.py.{meant}")
    return suite


def values_of(defined: Mapping[str, object], kind: type[_T]) -> list[_T]:
    """The values of that type in a module, each once; those in a list or tuple of the module count too."""
    found: dict[int, _T] = {}
    for value in defined.values():
        several = value if isinstance(value, list | tuple) else (value,)
        found |= {id(one): one for one in several if isinstance(one, kind)}
    return list(found.values())
