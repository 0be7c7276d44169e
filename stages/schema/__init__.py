"""JSON Schema: arguments checked and coerced against it, and what a backend's grammar can bear of it."""

from stages.schema.check import Check, Fits, Misfit, SchemaError, checker
from stages.schema.problems import Problem

__all__ = ["Check", "Fits", "Misfit", "Problem", "SchemaError", "checker"]
