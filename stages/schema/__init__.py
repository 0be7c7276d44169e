"""JSON Schema: arguments checked and coerced against it, and what a backend's grammar supports of it."""

from stages.schema.check import Check, Fits, Misfit, checker, unchecked
from stages.schema.compilation import SchemaError
from stages.schema.problems import Problem
from stages.schema.projection import Projection, Target, project
from stages.schema.readable import readable

__all__ = [
    "Check",
    "Fits",
    "Misfit",
    "Problem",
    "Projection",
    "SchemaError",
    "Target",
    "checker",
    "project",
    "readable",
    "unchecked",
]
