"""Toolset: what is needed of the tools to read a reply, compiled once: their checks and parameter names."""

from collections.abc import Mapping
from types import MappingProxyType

from msgspec import Struct

from stages.arithmetic import argument_check
from stages.rescue.names import Names, indexed
from stages.schema import Check
from stages.tool import ToolSpec


class Toolset(Struct, frozen=True, kw_only=True):
    """By the tools' names: the tools, the checks of their arguments, their parameters in the order of declaration.

    `names` are these parameters, indexed for the spellings of models.
    """

    specs: Mapping[str, ToolSpec]
    checks: Mapping[str, Check]
    parameters: Mapping[str, tuple[str, ...]]
    names: Names


def toolset_of(tools: tuple[ToolSpec, ...], checks: Mapping[str, Check] | None = None) -> Toolset:
    """The tools, compiled; with other checks of their arguments than their schemas', if given."""
    known = checks or {tool.name: argument_check(tool) for tool in tools}
    parameters = MappingProxyType({tool.name: tuple(tool.properties) for tool in tools})
    return Toolset(
        specs=MappingProxyType({tool.name: tool for tool in tools}),
        checks=MappingProxyType(dict(known)),
        parameters=parameters,
        names=indexed(parameters),
    )
