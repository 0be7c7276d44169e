"""The suite: scenarios whose data varies with the seed. docs/scenarios.md says what each one tests."""

from collections.abc import Mapping
from types import MappingProxyType

from forge.evals.scenario import Scenario
from forge.evals.suite.answering import ANSWERING
from forge.evals.suite.audit import AUDIT
from forge.evals.suite.billing import BILLING
from forge.evals.suite.boxes import BOXES
from forge.evals.suite.catalogue import CATALOGUE
from forge.evals.suite.comparing import COMPARING
from forge.evals.suite.editing import EDITING
from forge.evals.suite.forms import FORMS
from forge.evals.suite.hiring import HIRING
from forge.evals.suite.inbox import INBOX
from forge.evals.suite.incidents import INCIDENTS
from forge.evals.suite.legacy import LEGACY
from forge.evals.suite.orders import ORDERS
from forge.evals.suite.parallel import PARALLEL
from forge.evals.suite.patients import PATIENTS
from forge.evals.suite.personnel import PERSONNEL
from forge.evals.suite.recovery import RECOVERY
from forge.evals.suite.refunds import REFUNDS
from forge.evals.suite.reports import REPORTS
from forge.evals.suite.reservations import RESERVATIONS
from forge.evals.suite.selection import SELECTION
from forge.evals.suite.stock import STOCK
from forge.evals.suite.tickets import TICKETS
from forge.evals.suite.travel import TRAVEL
from forge.evals.suite.treatment import TREATMENT

ALL: tuple[Scenario, ...] = (
    *REPORTS,
    *SELECTION,
    *CATALOGUE,
    *PATIENTS,
    *INCIDENTS,
    *PERSONNEL,
    *AUDIT,
    *LEGACY,
    *HIRING,
    *TRAVEL,
    *TREATMENT,
    *ORDERS,
    *BILLING,
    *BOXES,
    *TICKETS,
    *RECOVERY,
    *STOCK,
    *RESERVATIONS,
    *REFUNDS,
    *PARALLEL,
    *INBOX,
    *FORMS,
    *EDITING,
    *COMPARING,
    *ANSWERING,
)

SUITES: Mapping[str, tuple[Scenario, ...]] = MappingProxyType(
    {"all": ALL, "seeds": tuple(scenario for scenario in ALL if "seeds" in scenario.tags)}
)
"""The scenarios of each suite, by its name."""

__all__ = ["ALL", "SUITES"]
