"""Middleware: forge's rules in your own loop. The guards themselves are in `stages/guards.py`."""

from forge.guardrails.actions import Action, AskPerson, Call, CallModel, Nudge, RunCalls, reply_of
from forge.guardrails.guardrails import Checkpoint, Guardrails
from forge.guardrails.parts import ErrorTracker, ResponseValidator, StepCheck, StepEnforcer, ValidationResult
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
