"""Whether this package is whole and forge's alone: pip merges packages of one name, and takes them apart together."""

from collections.abc import Iterable
from importlib.machinery import PathFinder
from types import ModuleType

_MEND = (
    "Run: pip uninstall -y forge-guardrails forge-toolcalls, then, in the folder of forge's source: pip install . "
    "To have both, give each an environment of its own (docs/names.md)."
)
MERGED = (
    "forge-guardrails has a package named forge too, and pip has put its files among those of forge-toolcalls. " + _MEND
)
"""Of an installation in which both are: whichever came last works, and uninstalling either breaks the other."""

_DAMAGED = (
    f"files of forge-toolcalls are missing or are not its own, as after forge-guardrails was uninstalled. {_MEND}"
)


def is_merged(path: Iterable[str]) -> bool:
    """Whether forge-guardrails lies in the package with that path as well; some ten microseconds."""
    # It has had this since its first version, and forge will not: a look into the folder is enough.
    return PathFinder.find_spec("forge.core", [*path]) is not None


def trouble(package: ModuleType) -> str:
    """What is wrong with the package `forge` as it was imported, and what to do; empty if it is forge's own."""
    if hasattr(package, "run_or_raise"):
        return ""  # this one looks itself when it is imported
    return MERGED if is_merged(package.__path__) else _DAMAGED
