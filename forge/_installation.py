"""The installation: its version, and damage by forge-guardrails, whose package is named forge too: pip merges both."""

from collections.abc import Iterable
from importlib.machinery import PathFinder
from types import ModuleType

VERSION = "0.1.0"

_MEND = (
    "Run: pip uninstall -y forge-guardrails forge-toolcalls, then, in the folder of forge's source: pip install . "
    "To have both, give each an environment of its own (docs/names.md)."
)
MERGED = (
    "forge-guardrails has a package named forge too, and pip has put its files among those of forge-toolcalls. " + _MEND
)
"""The warning if both are installed: the last one works, and uninstalling either breaks the other."""

_DAMAGED = (
    f"files of forge-toolcalls are missing or are not its own, as after forge-guardrails was uninstalled. {_MEND}"
)


def is_merged(path: Iterable[str]) -> bool:
    """Whether forge-guardrails is in the package at that path too. Takes about ten microseconds."""
    # forge-guardrails has always had this module, and forge never will.
    return PathFinder.find_spec("forge.core", [*path]) is not None


def trouble(package: ModuleType) -> str:
    """What is wrong with the imported package `forge`, and what to do; empty if nothing is."""
    if hasattr(package, "run_or_raise"):
        return ""  # it checks itself on import
    return MERGED if is_merged(package.__path__) else _DAMAGED
