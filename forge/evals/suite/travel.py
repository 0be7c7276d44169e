"""A travel desk that is asked for what none of its tools can do."""

from dataclasses import dataclass

from forge import Workflow
from forge.evals.scenario import Trajectory, World
from forge.evals.suite.checks import first_of, used, written
from forge.evals.suite.drawing import CITIES, PRODUCTS, Draw
from forge.evals.suite.lookups import SYSTEM, read
from forge.evals.suite.twin_scenarios import twins
from stages.rules import Limits


@dataclass(frozen=True)
class _TravelDesk:
    """Tools that answer whatever they are asked."""

    def get_forecast(self, city: str) -> dict[str, str]:
        """Get the weather forecast of a city."""
        return {"city": city, "forecast": "dry, 18 degrees"}

    def book_flight(self, origin: str, destination: str, date: str) -> str:
        """Book a flight."""
        return f"Booked: {origin} to {destination}, {date}."

    def check_hotel(self, city: str) -> dict[str, str]:
        """Check which hotels of a city have rooms."""
        return {"city": city, "free": "Hotel Central"}

    def convert_currency(self, amount: float, currency: str) -> dict[str, float]:
        """Convert an amount of a currency to euros."""
        return {currency: amount, "euros": round(amount * 0.9, 2)}

    def decline(self, reason: str) -> str:
        """Say that no tool can do what was asked.

        Args:
            reason: Why not, in a sentence.
        """
        return reason


def _question(draw: Draw) -> str:
    root, other = draw.randrange(11, 60), draw.randrange(3, 40)
    product, city = draw.choice(PRODUCTS), draw.choice(CITIES)
    return draw.choice(
        (
            f"What is the square root of {root * root}?",
            f"What is {root} times {other}?",
            f"Write a slogan for the {product}.",
            f"Which rhymes are there for {city}?",
            f"How do I repair the zip of a {product.split()[0]} bag?",
            f"Who was the mayor of {city} in {1900 + root}?",
        )
    )


def _relevance_detection(seed: int, *, stateful: bool) -> World:
    desk = _TravelDesk()
    travel = ("get_forecast", "check_hotel", "convert_currency", "book_flight")
    reads = (read(desk.get_forecast), read(desk.check_hotel), read(desk.convert_currency))
    workflow = Workflow(
        "relevance_detection",
        tools=[*reads, desk.book_flight, desk.decline],
        terminal_tool="decline",
        system_prompt=SYSTEM,
        limits=Limits(max_iterations=5),
    )

    def right(trajectory: Trajectory) -> str:
        reason = written(trajectory, "decline", "reason")
        problem = "" if len(reason.split()) >= 3 else "no reason was given"
        return first_of(problem, used(trajectory.calls, *travel) if stateful else "")

    return World(
        workflow=workflow,
        messages=(_question(Draw(seed)),),
        right=right,
        harm=lambda calls: used(calls, "book_flight"),
    )


TRAVEL = twins(
    "relevance_detection",
    "a question that no tool answers is declined",
    _relevance_detection,
    ideal_calls=1,
    tags={"model_quality"},
)
