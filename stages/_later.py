"""At first use: modules loaded and regular expressions compiled only then, so that importing forge is quick."""

import re
from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from typing import AnyStr, cast


def later(package: str, modules: Mapping[str, Iterable[str]]) -> Callable[[str], object]:
    """The `__getattr__` for a package, given its modules and the names that each exports."""
    places = {name: module for module, names in modules.items() for name in names}

    def attribute(name: str) -> object:
        if name not in places:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(places[name]), name)

    return attribute


def lazy_pattern(text: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """`re.compile`, but compiled at first use: for patterns that most programs never need."""
    return cast("re.Pattern[AnyStr]", _Uncompiled(text, flags))


class _Uncompiled:
    """Stands for a pattern. Each of its methods is kept here once looked up, and costs no more than the pattern's."""

    def __init__(self, text: str | bytes, flags: int) -> None:
        self._text = text
        self._flags = flags

    def __getattr__(self, name: str) -> object:
        found = getattr(re.compile(self._text, self._flags), name)
        setattr(self, name, found)
        return found
