"""JSON Schema: arguments checked and coerced against it, and what a backend's grammar can bear of it."""

from stages.schema.check import Check, Fits, Misfit, checker
from stages.schema.compiled import SchemaError
from stages.schema.problems import Problem
from stages.schema.project import Projection, Target, project

__all__ = ["Check", "Fits", "Misfit", "Problem", "Projection", "SchemaError", "Target", "checker", "project"]
