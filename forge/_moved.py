"""Old paths of modules lead to where the modules are now, with a DeprecationWarning that names the new place."""

import sys
import warnings
from importlib import import_module
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from importlib.abc import Loader
else:
    Loader = object  # importlib.abc takes longer to import than all of this package's own start

MOVED = {
    "forge.ablation": "forge.journal.ablation",
    "forge.backends.hardware": "forge.backends.servers.hardware",
    "forge.bisect": "forge.journal.bisection",
    "forge.slot_worker": "forge.backends.slot.worker",
    "forge.stage_list": "forge.workflow.stage_list",
    "forge.turn": "forge.workflow.turn",
    "stages.delta": "stages.wire.deltas",
    "stages.evidence": "stages.seen",
    "stages.order": "stages.rules",
    "stages.rescue.jsontext": "stages.repair.json_text",
    "stages.retry": "stages.retry",
    "stages.rules": "stages.rules",
}
"""The modules that the docs named, and no others."""

RENAMED = {"stages.rescue.jsontext": {"Json": "FoundJson"}, "stages.rules": {"Ladder": "Escalation"}}
"""Names in them that are others now."""


class _Moved(Loader):
    def find_spec(self, fullname: str, *_: object) -> ModuleSpec | None:
        """A module with the names of the one that took its place; None for any that has not moved."""
        return ModuleSpec(fullname, self) if fullname in MOVED else None

    def create_module(self, _: ModuleSpec) -> None:
        """No module of a special kind."""

    def exec_module(self, module: ModuleType) -> None:
        now = MOVED[module.__name__]
        warnings.warn(f"{module.__name__} is now {now}", DeprecationWarning, stacklevel=2)
        names = {name: value for name, value in vars(import_module(now)).items() if name[:2] != "__"}
        renamed = {old: names[new] for old, new in RENAMED.get(module.__name__, {}).items()}
        vars(module).update(names | renamed)


def install() -> None:
    """Have old paths found; last of all finders, so that no other import takes longer."""
    if not any(isinstance(finder, _Moved) for finder in sys.meta_path):
        sys.meta_path.append(_Moved())
