"""Middleware: forge's rules in your own loop. The guards themselves are in `stages/guards.py`."""

from forge.guardrails.enforcer import Guardrails, ResponseValidator, StepCheck, StepEnforcer, ValidationResult
from forge.guardrails.judge import (
    Action,
    AskPerson,
    Call,
    CallModel,
    Checkpoint,
    ErrorTracker,
    Nudge,
    RunCalls,
    reply_of,
)
from forge.outcome import Finished, Halted

__all__ = [
    "Action",
    "AskPerson",
    "Call",
    "CallModel",
    "Checkpoint",
    "ErrorTracker",
    "Finished",
    "Guardrails",
    "Halted",
    "Nudge",
    "ResponseValidator",
    "RunCalls",
    "StepCheck",
    "StepEnforcer",
    "ValidationResult",
    "reply_of",
]
