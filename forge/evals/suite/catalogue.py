"""An id that is handed on as it was given, and the facts behind it."""

from dataclasses import dataclass

from msgspec import Struct

from forge import Workflow
from forge.evals.scenario import Trajectory, World
from forge.evals.suite.checks import first_of, looked_up, told, written
from forge.evals.suite.drawing import PRODUCTS, Draw
from forge.evals.suite.lookups import SYSTEM, found, read
from forge.evals.suite.twin_scenarios import twins

_ORIGINS = ("Estonia", "Portugal", "Vietnam", "Slovenia", "Chile", "Denmark")


class _Item(Struct, frozen=True):
    product: str
    price: int
    made_in: str


@dataclass(frozen=True)
class _Catalogue:
    """Products by id; without `lenient`, only by the right name and id."""

    items: dict[str, _Item]
    lenient: bool

    def lookup_entity(self, name: str) -> dict[str, str]:
        """Look up a product's entity id by its name."""
        first, *_ = self.items
        ids = {item.product: entity_id for entity_id, item in self.items.items()}
        return {"entity_id": first if self.lenient else found(ids, name, "product")}

    def fetch_details(self, entity_id: str) -> _Item:
        """Fetch the details of an entity by its id."""
        first = next(iter(self.items.values()))
        return first if self.lenient else found(self.items, entity_id, "entity")

    def present(self, summary: str) -> str:
        """Present a summary to the user."""
        return summary


def _argument_fidelity(seed: int, *, stateful: bool) -> World:
    draw = Draw(seed)
    origins, names = draw.sample(_ORIGINS, 3), draw.sample(PRODUCTS, 3)
    drawn = zip(names, draw.sample(range(150, 4000, 7), 3), origins, strict=True)
    items = {draw.id("ENT-"): _Item(*one) for one in drawn}
    catalogue = _Catalogue(items, lenient=not stateful)
    entity_id, item = next(iter(items.items()))
    workflow = Workflow(
        "argument_fidelity",
        tools=[read(catalogue.lookup_entity), read(catalogue.fetch_details), catalogue.present],
        terminal_tool="present",
        required_steps=["lookup_entity", "fetch_details"],
        system_prompt=SYSTEM,
    )

    def right(trajectory: Trajectory) -> str:
        never = [fact for other in list(items.values())[1:] for fact in (other.price, other.made_in)]
        summary = written(trajectory, "present", "summary")
        problem = looked_up(trajectory, "fetch_details", entity_id=entity_id) if stateful else ""
        return first_of(problem, told(summary, (item.product, item.price, item.made_in), never))

    asked = f"Find the {item.product} in our catalogue, fetch its details, and present its name, price and origin."
    return World(workflow=workflow, messages=(asked,), right=right)


CATALOGUE = twins(
    "argument_fidelity",
    "an id from one result is the argument of the next call",
    _argument_fidelity,
    ideal_calls=3,
    tags={"model_quality"},
)
