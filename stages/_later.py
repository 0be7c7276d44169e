"""At first use: modules loaded and regular expressions compiled only then, so that importing forge is quick."""

import re
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from importlib import import_module
from typing import AnyStr, Generic


def later(package: str, modules: Mapping[str, Iterable[str]]) -> Callable[[str], object]:
    """The `__getattr__` for a package, given its modules and the names that each exports."""
    places = {name: module for module, names in modules.items() for name in names}

    def attribute(name: str) -> object:
        if name not in places:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(places[name]), name)

    return attribute


class LazyPattern(Generic[AnyStr]):
    """A regular expression that is compiled at first use, for those that most programs never need.

    Compiling all of them would take a twentieth of the time of `import forge`.
    """

    def __init__(self, text: AnyStr, flags: int = 0) -> None:
        self._text: AnyStr = text
        self._flags = flags

    @cached_property
    def compiled(self) -> re.Pattern[AnyStr]:
        """The pattern."""
        return re.compile(self._text, self._flags)
