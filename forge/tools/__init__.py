"""Tools: from functions and types to the schemas that a model sees, and from its JSON back to values."""

from forge.tools.annotations import AnnotationError
from forge.tools.calculated_arguments import Calculations
from forge.tools.decorator import Grounds, Tool, respond_tool, tool
from forge.tools.definition import ToolDef, ToolOptions
from forge.tools.parameters import IdempotencyKey
from forge.tools.signature import Returned, Signature

__all__ = [
    "AnnotationError",
    "Calculations",
    "Grounds",
    "IdempotencyKey",
    "Returned",
    "Signature",
    "Tool",
    "ToolDef",
    "ToolOptions",
    "respond_tool",
    "tool",
]
