"""Testing kit for your own stages, guards, compactors, families and stores: strategies, laws, a scripted model.

It needs the extra `testing`; docs/testing.md shows how.
"""

import importlib.util

if importlib.util.find_spec("hypothesis") is None:
    from forge.errors import to_install

    raise ImportError(f"forge.testing needs Hypothesis, which is not installed; {to_install('testing')}")

from forge.interpreters.scripted import Scripted, ScriptError, call, calls
from forge.testing.compactor_laws import COMPACTOR_LAWS, Trial, assert_compactor_laws, attempt
from forge.testing.guard_laws import GUARD_LAWS, assert_guard_laws
from forge.testing.laws import BrokenLawError, assert_answered
from forge.testing.stage_laws import STAGE_LAWS, assert_stage_laws
from forge.testing.store_laws import assert_fact_store_laws, assert_session_store_laws
from forge.testing.strategies import (
    arguments,
    batches,
    budgets,
    chunkings,
    histories,
    ledgers,
    malformed,
    messages,
    replies,
    results,
    states,
    texts,
)

__all__ = [
    "COMPACTOR_LAWS",
    "GUARD_LAWS",
    "STAGE_LAWS",
    "BrokenLawError",
    "ScriptError",
    "Scripted",
    "Trial",
    "arguments",
    "assert_answered",
    "assert_compactor_laws",
    "assert_fact_store_laws",
    "assert_guard_laws",
    "assert_session_store_laws",
    "assert_stage_laws",
    "attempt",
    "batches",
    "budgets",
    "call",
    "calls",
    "chunkings",
    "histories",
    "ledgers",
    "malformed",
    "messages",
    "replies",
    "results",
    "states",
    "texts",
]
