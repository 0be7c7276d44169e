"""Changes to a workflow since a run began, in terms of its options."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields

import msgspec
from msgspec import Raw, Struct, structs

from forge.journal.records import Journal
from forge.workflow.workflow import Context, Workflow
from stages.rules import Calls, Limits
from stages.tool import ToolSpec

SHOWN = 100
"""Maximum characters to show of a value."""

Definition = Mapping[str, object]
"""A workflow as data: its options, and its tools by name."""

_GROUPS: Mapping[str, type[Struct]] = {"limits": Limits, "context": Context, "calls": Calls}
"""Options that are groups; their fields are compared one by one."""

_STAYS = {"system_prompt": ", and this run keeps the one that it began with"}
"""Options whose change does not affect a run that has begun."""


def definition_of(workflow: Workflow) -> Definition:
    """The workflow as data: options that differ from their defaults, functions by name."""
    written: dict[str, object] = {"tools": {spec.name: _plain(spec) for spec in workflow.rules.tools}}
    for option in fields(workflow):
        value = getattr(workflow, option.name)
        if option.init and option.name not in {"name", "tools"} and value != option.default:
            written[option.name] = _plain(value)
    return written


def changes(before: Definition, after: Definition) -> tuple[str, ...]:
    """The differences, one sentence each; none if the first definition was not recorded."""
    if not before:
        return ()
    old, new = _table(before.get("tools")), _table(after.get("tools"))
    options = [option for option in fields(Workflow) if option.name not in {"tools", *_GROUPS}]
    return (
        *(f"the tool {name} is gone" for name in old if name not in new),
        *(f"the tool {name} is new" for name in new if name not in old),
        *(said for name in new if name in old for said in _of_tool(name, _table(old[name]), _table(new[name]))),
        *(said for o in options for said in _of_option(o.name, o.name, before, after, o.default)),
        *(
            said
            for name, kind in _GROUPS.items()
            for o in structs.fields(kind)
            for said in _of_option(
                f"{name}.{o.name}", o.name, _table(before.get(name)), _table(after.get(name)), o.default
            )
        ),
    )


def changed_since(journal: Journal, workflow: Workflow) -> tuple[str, ...]:
    """How the workflow differs from the one that was recorded when the run began."""
    return changes(journal.header.definition, definition_of(workflow))


def _of_tool(tool: str, one: Mapping[str, object], other: Mapping[str, object]) -> Iterator[str]:
    before, after = _table(one.get("parameters")), _table(other.get("parameters"))
    old, new = _table(before.get("properties")), _table(after.get("properties"))
    yield from (f"{tool}: the argument {name} is gone" for name in old if name not in new)
    yield from (f"{tool}: the argument {name} is new" for name in new if name not in old)
    for name in new:
        if name in old and old[name] != new[name]:
            yield f"{tool}: the schema of {name} is now {_said(new[name])}; it was {_said(old[name])}"
    was, must = _names(before.get("required")), _names(after.get("required"))
    yield from (f"{tool}: the argument {name} is required now" for name in must if name in old and name not in was)
    yield from (f"{tool}: the argument {name} is optional now" for name in was if name in new and name not in must)
    parts = ("properties", "required")
    if {k: v for k, v in before.items() if k not in parts} != {k: v for k, v in after.items() if k not in parts}:
        yield f"{tool}: the schema of its arguments has changed"
    for field in structs.fields(ToolSpec):
        if field.name not in {"name", "parameters"}:
            yield from _of_option(f"{tool}: its {field.name}", field.name, one, other, field.default)


def _of_option(
    title: str, name: str, before: Mapping[str, object], after: Mapping[str, object], default: object
) -> Iterator[str]:
    """The change of an option, if any; a missing value is the default."""
    if before.get(name) == after.get(name):
        return
    was, now = (
        _said(side[name]) if name in side else f"{_said(_plain(default))} (the default)" for side in (before, after)
    )
    yield f"{title} is now {now}; it was {was}{_STAYS.get(name, '')}"


def _said(value: object) -> str:
    text = msgspec.json.encode(value).decode()
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}…"


def _table(value: object) -> Mapping[str, object]:
    return value if isinstance(value, dict) else {}


def _names(value: object) -> list[str]:
    return [name for name in value if isinstance(name, str)] if isinstance(value, list) else []


def _plain(value: object) -> object:
    """The value as JSON; a value without a JSON form is represented by its name."""
    match value:
        case None | bool() | int() | float() | str():
            return value
        case Raw():
            return _plain(msgspec.json.decode(value))
        case Struct():
            given = ((f.name, getattr(value, f.name), f.default) for f in structs.fields(value))
            return {name: _plain(own) for name, own, default in given if own != default}
        case Mapping():
            return {str(name): _plain(own) for name, own in value.items()}
        case Sequence() | frozenset() | set():
            return [_plain(own) for own in value]
        case _:
            return str(getattr(value, "__qualname__", type(value).__qualname__))
