"""Two look-ups that do not depend on each other: a model may make both in one reply."""

from dataclasses import dataclass

from forge import Workflow
from forge.evals.scenario import Scenario, Trajectory, World
from forge.evals.suite.checks import first_of, sent
from forge.evals.suite.drawing import CITIES, Draw
from forge.evals.suite.lookups import SYSTEM, found, read


@dataclass(frozen=True)
class _Weather:
    degrees: dict[str, int]

    def get_temperature(self, city: str) -> dict[str, int]:
        """Get the temperature of a city, in degrees Celsius."""
        return {"degrees": found(self.degrees, city, "city")}

    def report_warmer(self, city: str, difference: int) -> str:
        """Report the warmer one of two cities.

        Args:
            city: The warmer one.
            difference: By how many degrees it is warmer.
        """
        return f"{city}, by {difference} degrees."


def _two_at_once(seed: int) -> World:
    draw = Draw(seed)
    weather = _Weather(dict(zip(draw.sample(CITIES, 2), draw.sample(range(2, 35), 2), strict=True)))
    workflow = Workflow(
        "two_at_once",
        tools=[read(weather.get_temperature), weather.report_warmer],
        terminal_tool="report_warmer",
        required_steps=["get_temperature"],
        grounded={"report_warmer": ("city",)},
        calculated={"report_warmer": ("difference",)},
        system_prompt=SYSTEM,
    )
    (cold, low), (warm, high) = sorted(weather.degrees.items(), key=lambda known: known[1])

    def right(trajectory: Trajectory) -> str:
        asked = {str(call.arguments["city"]).strip().casefold() for call in trajectory.of("get_temperature")}
        problem = "" if asked >= {cold.casefold(), warm.casefold()} else f"only {sorted(asked)} were looked up"
        return first_of(problem, sent(trajectory, "report_warmer", city=warm, difference=high - low))

    first, second = weather.degrees
    message = f"In which city is it warmer now, {first} or {second}, and by how many degrees?"
    return World(workflow=workflow, messages=(message,), right=right)


PARALLEL = (
    Scenario(
        name="two_at_once",
        about="two look-ups that fit into one reply, and the difference of their results",
        world=_two_at_once,
        ideal_calls=2,
        tags=frozenset({"parallel"}),
        context_tokens=4096,
    ),
)
