"""Two and three steps to a text: the facts of a country, the sales of a quarter."""

from dataclasses import dataclass, field
from functools import partial

from msgspec import Struct

from forge import ToolResolutionError, Workflow, tool
from forge.evals.scenario import Trajectory, World
from forge.evals.suite.checks import first_of, looked_up, told, written
from forge.evals.suite.drawing import PRODUCTS, Draw
from forge.evals.suite.lookups import SYSTEM, found, read
from forge.evals.suite.twin_scenarios import twins

# Countries that do not exist, so that no model knows their capitals.
_COUNTRIES = ("Valdoria", "Kestovia", "Ormanth", "Lirande", "Tessaly Isles", "Brunnmark")
_CAPITALS = ("Halvik", "Port Merrow", "Ostrane", "Quillan", "Sarnett", "Dunmoor")
_REGIONS = ("APAC", "EMEA", "LATAM", "Nordics", "DACH", "Iberia")


class _Country(Struct, frozen=True):
    capital: str
    population: int


def _basic_2step(seed: int, *, stateful: bool) -> World:
    draw = Draw(seed)
    sizes = draw.sample(range(210_000, 9_000_000, 1_000), 3)
    drawn = zip(draw.sample(_CAPITALS, 3), sizes, strict=True)
    countries = dict(zip(draw.sample(_COUNTRIES, 3), (_Country(*one) for one in drawn), strict=True))
    name, asked_for = next(iter(countries.items()))

    @read
    def get_country_info(country: str) -> _Country:
        """Get the capital and the population of a country."""
        return found(countries, country, "country") if stateful else asked_for

    def summarize(content: str) -> str:
        """Give the user the summary."""
        return content

    workflow = Workflow(
        "basic_2step",
        tools=[get_country_info, summarize],
        terminal_tool="summarize",
        required_steps=["get_country_info"],
        system_prompt=SYSTEM,
    )

    def right(trajectory: Trajectory) -> str:
        facts = (asked_for.capital, asked_for.population)
        never = [other.capital for other in countries.values() if other is not asked_for]
        return told(written(trajectory, "summarize", "content"), facts, never)

    message = f"What is the capital of {name}, and exactly how many people live in the country? Summarize it."
    return World(workflow=workflow, messages=(message,), right=right)


class _Analysis(Struct, frozen=True):
    growth_percent: int
    best_product: str
    strongest_region: str


@dataclass
class _Sales:
    """The sales by quarter and year; without `lenient`, what was fetched last is analysed."""

    analyses: dict[tuple[int, int], _Analysis]
    lenient: bool
    loaded: list[tuple[int, int]] = field(default_factory=list)

    def fetch_sales_data(self, quarter: int, year: int) -> str:
        """Load the sales of a quarter, to be analyzed.

        Args:
            quarter: 1 to 4.
            year: As in 2024.
        """
        if not self.lenient and (quarter, year) not in self.analyses:
            raise ToolResolutionError(f"There are no sales of quarter {quarter} of {year}.")
        self.loaded.append((quarter, year))
        return f"The sales of Q{quarter} {year} are loaded."

    def analyze_sales(self) -> _Analysis:
        """Analyze the sales that were loaded."""
        if not self.loaded:
            raise ToolResolutionError("No sales are loaded.")
        first = next(iter(self.analyses.values()))
        return first if self.lenient else self.analyses[self.loaded[-1]]

    def report(self, findings: str) -> str:
        """Report the findings to the user."""
        return findings


def _sequential_3step(seed: int, *, stateful: bool) -> World:
    draw = Draw(seed)
    year = draw.randrange(2019, 2026)
    periods = [(quarter, year) for quarter in draw.sample(range(1, 5), 3)]
    drawn = zip(draw.sample(range(11, 90), 3), draw.sample(PRODUCTS, 3), draw.sample(_REGIONS, 3), strict=True)
    sales = _Sales(dict(zip(periods, (_Analysis(*one) for one in drawn), strict=True)), lenient=not stateful)
    workflow = Workflow(
        "sequential_3step",
        tools=[
            tool(effect="read", repeatable=True)(sales.fetch_sales_data),
            tool(effect="read", repeatable=True, prerequisites=["fetch_sales_data"])(sales.analyze_sales),
            sales.report,
        ],
        terminal_tool="report",
        required_steps=["fetch_sales_data", "analyze_sales"],
        system_prompt=SYSTEM,
    )
    quarter = periods[0][0]
    message = f"Report on the sales of Q{quarter} {year}: the growth, the best product and the strongest region."
    return World(workflow=workflow, messages=(message,), right=partial(_reported, sales))


def _reported(sales: _Sales, trajectory: Trajectory) -> str:
    (period, wanted), *others = sales.analyses.items()
    quarter, year = period
    problem = "" if sales.lenient else looked_up(trajectory, "fetch_sales_data", quarter=quarter, year=year)
    facts = (wanted.growth_percent, wanted.best_product, wanted.strongest_region)
    never = [fact for _, other in others for fact in (other.best_product, other.strongest_region)]
    return first_of(problem, told(written(trajectory, "report", "findings"), facts, never))


REPORTS = (
    *twins(
        "basic_2step",
        "one look-up, one answer",
        _basic_2step,
        ideal_calls=2,
        tags={"plumbing"},
    ),
    *twins(
        "sequential_3step",
        "two steps in order before the answer",
        _sequential_3step,
        ideal_calls=3,
        tags={"plumbing"},
    ),
)
