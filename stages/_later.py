"""Lazy exports: a module is loaded when one of its names is first used, so that importing a package is quick."""

from collections.abc import Callable, Iterable, Mapping
from importlib import import_module


def later(package: str, modules: Mapping[str, Iterable[str]]) -> Callable[[str], object]:
    """The `__getattr__` for a package, given its modules and the names that each exports."""
    places = {name: module for module, names in modules.items() for name in names}

    def attribute(name: str) -> object:
        if name not in places:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(places[name]), name)

    return attribute
