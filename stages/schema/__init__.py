"""JSON Schema: arguments checked and coerced against a schema, and schemas reduced to what backends support."""

from stages.schema.check import Check, Fits, Misfit, Problem, checker, readable_schema, unchecked
from stages.schema.judging import SchemaError
from stages.schema.projection import Projection, SchemaTarget, project

__all__ = [
    "Check",
    "Fits",
    "Misfit",
    "Problem",
    "Projection",
    "SchemaError",
    "SchemaTarget",
    "checker",
    "project",
    "readable_schema",
    "unchecked",
]
