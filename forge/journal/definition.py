"""A workflow as data, so that a journal can say what it was when the run began."""

from collections.abc import Mapping, Sequence
from dataclasses import fields

import msgspec
from msgspec import Raw, Struct, structs

from forge.workflow.workflow import Workflow

Definition = Mapping[str, object]
"""A workflow as data: its options, and its tools by name."""


def definition_of(workflow: Workflow) -> Definition:
    """The workflow as data: options that differ from their defaults, functions by name."""
    written: dict[str, object] = {"tools": {spec.name: _plain(spec) for spec in workflow.rules.tools}}
    for option in fields(workflow):
        value = getattr(workflow, option.name)
        if option.init and option.name not in {"name", "tools"} and value != option.default:
            written[option.name] = _plain(value)
    return written


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
        case frozenset() | set():
            # The order of a set differs from process to process, and a durable run would take that for a change.
            return sorted(map(_plain, value), key=msgspec.json.encode)
        case Sequence():
            return [_plain(own) for own in value]
        case _:
            return str(getattr(value, "__qualname__", type(value).__qualname__))
