"""Kinds: options of a workflow that are of another kind than it takes, refused with what to write."""

from collections.abc import Collection, Mapping

from forge.errors import DefinitionError
from stages.order import Use
from stages.rescue import Family
from stages.rules import Ladder, RepairLimits
from stages.summary import Summarize

ONE: Mapping[str, tuple[type, ...]] = {
    "ladder": (Ladder,),
    "repair_limits": (RepairLimits,),
    "summarize": (bool, Summarize),
}
MANY: Mapping[str, tuple[type, ...]] = {"order": (Use,), "families": (Family,), "context_thresholds": (float, int)}


def refuse_foreign(options: Mapping[str, object]) -> None:
    """DefinitionError for the options that are of another kind: nothing else can be looked at then."""
    found = _functions("tools", options["tools"]) + _guards(options["guards"])
    compactor = options["compactor"]
    if isinstance(compactor, type):
        found.append(f"compactor is the class {compactor.__name__}; write {compactor.__name__}()")
    elif compactor is not None and not callable(compactor):
        found.append(f"compactor is {compactor!r}; it must be a function of a history and a budget")
    found += [
        f"{name} is {options[name]!r}; it must be a {_named(kinds)}"
        for name, kinds in ONE.items()
        if options[name] is not None and not isinstance(options[name], kinds)
    ]
    found += [problem for name, kinds in MANY.items() for problem in _list(name, options[name], kinds)]
    if found:
        raise DefinitionError(tuple(found))


def _functions(name: str, value: object) -> list[str]:
    return [] if _is_list(value) else [f"{name} is {value!r}; it must be a list of functions"]


def _guards(value: object) -> list[str]:
    found = [one for one in value if not callable(one)] if isinstance(value, Collection) else []
    return _functions("guards", value) or [f"guards: {one!r} is no function of a state and its calls" for one in found]


def _is_list(value: object) -> bool:
    """Whether it can be looked through more than once, so that looking here takes nothing from it."""
    return isinstance(value, Collection) and not isinstance(value, str | Mapping)


def _list(name: str, value: object, kinds: tuple[type, ...]) -> list[str]:
    if not isinstance(value, Collection) or not _is_list(value):
        return [f"{name} is {value!r}; it must be a list, each a {_named(kinds)}"]
    return [f"{name}: {one!r} is no {_named(kinds)}" for one in value if not isinstance(one, kinds)]


def _named(kinds: tuple[type, ...]) -> str:
    return " or ".join(kind.__name__ for kind in kinds)
