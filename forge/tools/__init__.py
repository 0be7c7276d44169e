"""Tools: from functions and types to the schemas that a model sees, and from its JSON back to values."""

from forge.tools.definition import (
    Calculations,
    Grounds,
    IdempotencyKey,
    Returned,
    Signature,
    Tool,
    ToolDef,
    ToolOptions,
    respond_tool,
    tool,
)
from forge.tools.schemas import AnnotationError

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
