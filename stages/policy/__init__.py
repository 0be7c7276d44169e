"""Policy: the rules of a workflow, what is legal now, progress, escalation and retries."""

from typing import TYPE_CHECKING

from stages._later import later

if TYPE_CHECKING:
    from stages.policy.levels import Escalation, EscalationLevel
    from stages.policy.listing import Each
    from stages.policy.order import Change, Use
    from stages.policy.retry import Backoff, RetryPolicy, Tries
    from stages.policy.rules import RepairLimits, Rules, completed, legal_tools, pending
    from stages.policy.session_ledger import recount

__all__ = [
    "Backoff",
    "Change",
    "Each",
    "Escalation",
    "EscalationLevel",
    "RepairLimits",
    "RetryPolicy",
    "Rules",
    "Tries",
    "Use",
    "completed",
    "legal_tools",
    "pending",
    "recount",
]

# Rules stand on rooms whose modules use other modules of this one.
__getattr__ = later(
    __name__,
    {
        "stages.policy.levels": ("Escalation", "EscalationLevel"),
        "stages.policy.listing": ("Each",),
        "stages.policy.order": ("Change", "Use"),
        "stages.policy.retry": ("Backoff", "RetryPolicy", "Tries"),
        "stages.policy.rules": ("RepairLimits", "Rules", "completed", "legal_tools", "pending"),
        "stages.policy.session_ledger": ("recount",),
    },
)
