"""Middleware: forge's rules in a loop of your own. The guards themselves are in `stages/guards/`."""

from forge.guardrails.actions import Action, AskPerson, Call, CallModel, Nudge, RunCalls
from forge.guardrails.enforcer import StepCheck, StepEnforcer
from forge.guardrails.errors import ErrorTracker
from forge.guardrails.holder import Guardrails
from forge.guardrails.judge import Checkpoint
from forge.guardrails.replies import reply_of
from forge.guardrails.validator import ResponseValidator, ValidationResult
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
