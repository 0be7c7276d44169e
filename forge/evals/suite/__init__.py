"""The suite: scenarios whose data varies with the seed. docs/scenarios.md says what each one tests."""

from collections.abc import Mapping
from types import MappingProxyType

from forge.evals.scenario import Scenario
from forge.evals.suite.deciding import DECIDING
from forge.evals.suite.editing import EDITING
from forge.evals.suite.long_chains import LONG_CHAINS
from forge.evals.suite.looking_up import LOOKING_UP
from forge.evals.suite.orders import ORDERS
from forge.evals.suite.refraining import REFRAINING

ALL: tuple[Scenario, ...] = (*LOOKING_UP, *LONG_CHAINS, *ORDERS, *DECIDING, *EDITING, *REFRAINING)

SUITES: Mapping[str, tuple[Scenario, ...]] = MappingProxyType(
    {"all": ALL, "seeds": tuple(scenario for scenario in ALL if "seeds" in scenario.tags)}
)
"""The scenarios of each suite, by its name."""

__all__ = ["ALL", "SUITES"]
