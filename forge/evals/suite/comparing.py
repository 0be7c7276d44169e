"""The best of several that have to be looked up, by conditions and by what it comes to in all."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

from msgspec import Struct

from forge import Workflow, tool
from forge.evals.scenario import Scenario, Trajectory, World
from forge.evals.suite.checks import first_of, miswritten, sent
from forge.evals.suite.drawing import PRODUCTS, Draw
from forge.evals.suite.lookups import SYSTEM, found, read
from stages.rules import Each, Limits, Use


class _Flat(Struct, frozen=True):
    rooms: int
    rent: int
    minutes_to_station: int


@dataclass(frozen=True)
class _Agency:
    flats: dict[str, _Flat]

    def list_flats(self) -> list[str]:
        """List the ids of all flats that are free."""
        return list(self.flats)

    def get_flat(self, flat_id: str) -> _Flat:
        """Look up a flat: its rooms, its monthly rent, and the minutes on foot to the station."""
        return found(self.flats, flat_id, "flat")

    def propose_flat(self, flat_id: str) -> str:
        """Propose a flat to the customer."""
        found(self.flats, flat_id, "flat")
        return f"{flat_id} is proposed."


def _flats(draw: Draw) -> Iterator[_Flat]:
    """The right one, then one that is cheaper but too small, one too far away, and two that are dearer."""
    rooms, rent, minutes = draw.randrange(3, 5), draw.randrange(900, 1400, 10), draw.randrange(6, 15)
    yield _Flat(rooms, rent, minutes)
    yield _Flat(rooms - 1, rent - draw.randrange(50, 200, 10), minutes)
    yield _Flat(rooms + 1, rent - draw.randrange(50, 200, 10), minutes + 20)
    yield _Flat(rooms + 1, rent + draw.randrange(20, 200, 10), minutes)
    yield _Flat(rooms, rent + draw.randrange(20, 200, 10), minutes - 4)


def _best_of_several(seed: int) -> World:
    draw = Draw(seed)
    flats = {draw.id("F-"): flat for flat in _flats(draw)}
    (best, wanted), *_ = flats.items()
    agency = _Agency({flat_id: flats[flat_id] for flat_id in draw.sample(list(flats), len(flats))})
    workflow = Workflow(
        "best_of_several",
        tools=[read(agency.list_flats), read(agency.get_flat), agency.propose_flat],
        terminal_tool="propose_flat",
        required_steps=["list_flats", "get_flat"],
        order=[Use(tool="get_flat", each_of=Each(tool="list_flats", argument="flat_id"))],
        grounded={"get_flat": ("flat_id",), "propose_flat": ("flat_id",)},
        system_prompt=SYSTEM,
        limits=Limits(max_iterations=15),
    )
    message = (
        f"Propose the cheapest flat with at least {wanted.rooms} rooms from which it is at most "
        f"{wanted.minutes_to_station + 5} minutes to the station."
    )
    right = partial(_proposed, best, len(flats))
    return World(workflow=workflow, messages=(message,), right=right)


def _proposed(best: str, count: int, trajectory: Trajectory) -> str:
    seen = len({str(call.arguments.get("flat_id")) for call in trajectory.of("get_flat")})
    problem = "" if seen == count else f"{seen} of {count} flats were looked at"
    return first_of(sent(trajectory, "propose_flat", flat_id=best), problem)


class _Offer(Struct, frozen=True):
    price_each: float
    delivery: float
    smallest_order: int


@dataclass(frozen=True)
class _Purchasing:
    offers: dict[str, _Offer]

    def list_suppliers(self, product: str) -> dict[str, object]:
        """List the suppliers of a product."""
        return {"product": product, "suppliers": list(self.offers)}

    def get_offer(self, supplier: str) -> _Offer:
        """Get the offer of a supplier: the price of each piece, the delivery of the whole order, its smallest size."""
        return found(self.offers, supplier, "supplier")

    def place_order(self, supplier: str, quantity: int, total: float) -> str:
        """Order from a supplier.

        Args:
            supplier: The supplier's name.
            quantity: How many pieces.
            total: What the order comes to: the pieces and the delivery.
        """
        return f"{quantity} pieces ordered from {supplier} for {total}."


def _offers(draw: Draw, quantity: int) -> Iterator[_Offer]:
    """The right one, then one cheaper a piece but not in all, one only for larger orders, and one that is dearer."""
    price, delivery = draw.randrange(12, 40), draw.randrange(5, 20)
    yield _Offer(price, delivery, 1)
    yield _Offer(price - 1, delivery + quantity + draw.randrange(5, 30), 1)
    yield _Offer(price - 2, delivery, quantity + draw.randrange(10, 50, 10))
    yield _Offer(price + 2, 0, 1)


def _comparing_offers(seed: int) -> World:
    draw = Draw(seed)
    quantity, product = draw.randrange(20, 80), draw.choice(PRODUCTS)
    suppliers = draw.sample(("Arno", "Brill", "Cadmo", "Dorset", "Elbe", "Fenwick"), 4)
    offers = dict(zip(suppliers, _offers(draw, quantity), strict=True))
    purchasing = _Purchasing({name: offers[name] for name in draw.sample(suppliers, 4)})
    order = tool(prerequisites=["get_offer"])(purchasing.place_order)
    workflow = Workflow(
        "comparing_offers",
        tools=[read(purchasing.list_suppliers), read(purchasing.get_offer), order],
        terminal_tool="place_order",
        required_steps=["list_suppliers", "get_offer"],
        order=[Use(tool="get_offer", each_of=Each(tool="list_suppliers", argument="supplier", member="suppliers"))],
        grounded={"place_order": ("supplier",)},
        calculated={"place_order": ("total",)},
        system_prompt=SYSTEM,
        limits=Limits(max_iterations=15),
    )
    best = offers[suppliers[0]]
    total = best.price_each * quantity + best.delivery
    wanted = {"supplier": suppliers[0], "quantity": quantity, "total": total}
    message = (
        f"Order {quantity} pieces of the {product} from the supplier with whom the whole order, delivery included, "
        "costs least. An offer whose smallest order is larger than ours is out."
    )
    return World(
        workflow=workflow,
        messages=(message,),
        right=lambda trajectory: sent(trajectory, "place_order", **wanted),
        harm=lambda calls: miswritten(calls, "place_order", **wanted),
    )


COMPARING = (
    Scenario(
        name="best_of_several",
        about="five items are looked up and compared; the cheapest that meets two conditions is proposed",
        world=_best_of_several,
        ideal_calls=7,
        tags=frozenset({"deciding", "reasoning"}),
        context_tokens=4096,
    ),
    Scenario(
        name="comparing_offers",
        about="four offers are compared by what the whole order comes to; one does not count",
        world=_comparing_offers,
        ideal_calls=6,
        tags=frozenset({"deciding", "reasoning"}),
        context_tokens=4096,
    ),
)
