"""Going on after an error: a format that only the error tells, a service that is busy, a source that is gone."""

from dataclasses import dataclass, field

from msgspec import Struct

from forge import ToolFailed, Workflow, tool
from forge.evals.scenario import Scenario, World
from forge.evals.suite.checks import miswritten, sent, told, written
from forge.evals.suite.drawing import CITIES, PRODUCTS, Draw
from forge.evals.suite.lookups import SYSTEM, found, read
from forge.evals.suite.twin_scenarios import twins

# Nobody can know of an error before it comes, so without recovery the run ends.
_NEEDS_RECOVERY = frozenset({"no_recovery", "bare"})


class _Records(Struct, frozen=True):
    fetched: int
    newest: str


def _error_recovery(seed: int, *, stateful: bool) -> World:
    draw = Draw(seed)
    counts, names = draw.sample(range(12, 99), 3), draw.sample(PRODUCTS, 3)
    newest = {f"{count:04}": _Records(count, name) for count, name in zip(counts, names, strict=True)}
    wanted = newest[f"{counts[0]:04}"]

    @read
    def fetch(count: str) -> _Records:
        """Fetch records, the newest first.

        Args:
            count: How many records.
        """
        if len(count) != 4 or not count.isdecimal():
            raise TypeError(f"count must be four digits, zero-padded, such as '0007'; got {count!r}")
        return found(newest, count, "batch of size") if stateful else wanted

    def summarize(content: str) -> str:
        """Give the user the summary."""
        return content

    workflow = Workflow(
        "error_recovery",
        tools=[fetch, summarize],
        terminal_tool="summarize",
        required_steps=["fetch"],
        system_prompt=SYSTEM,
    )
    message = f"Fetch {wanted.fetched} records and summarize: how many records there are, and which one is the newest."
    facts, never = (wanted.fetched, wanted.newest), names[1:]
    return World(
        workflow=workflow,
        messages=(message,),
        right=lambda trajectory: told(written(trajectory, "summarize", "content"), facts, never),
    )


@dataclass
class _Exchange:
    """Rates by currency, from a service that is busy at first."""

    rates: dict[str, float]
    asked: list[str] = field(default_factory=list)

    def get_rate(self, currency: str) -> dict[str, float]:
        """Get today's price of one unit of a currency, in euros."""
        rate = found(self.rates, currency, "currency")
        self.asked.append(currency)
        if len(self.asked) == 1:
            raise RuntimeError("The service is busy. Try the same call again.")
        return {"euros": rate}

    def publish_rate(self, currency: str, euros: float) -> str:
        """Publish today's price of one unit of a currency."""
        return f"Published: 1 {currency} is {euros} euros."


def _retry_later(seed: int) -> World:
    draw = Draw(seed)
    names = draw.sample(("CHF", "NOK", "PLN", "CZK", "DKK", "SEK"), 3)
    exchange = _Exchange({name: draw.randrange(1001, 9999) / 10_000 for name in names})
    currency = names[0]
    workflow = Workflow(
        "retry_later",
        tools=[tool(effect="read", repeatable=True)(exchange.get_rate), exchange.publish_rate],
        terminal_tool="publish_rate",
        required_steps=["get_rate"],
        grounded={"publish_rate": ("currency", "euros")},
        system_prompt=SYSTEM,
    )
    wanted = {"currency": currency, "euros": exchange.rates[currency]}
    return World(
        workflow=workflow,
        messages=(f"Publish today's price of the {currency} in euros.",),
        right=lambda trajectory: sent(trajectory, "publish_rate", **wanted),
        harm=lambda calls: miswritten(calls, "publish_rate", **wanted),
    )


@dataclass(frozen=True)
class _Parcels:
    places: dict[str, str]

    def track_parcel(self, parcel_id: str) -> str:
        """Ask the carrier's tracking where a parcel is."""
        raise ToolFailed(f"Tracking was switched off last month; nothing is known of {parcel_id} here.")

    def ask_depot(self, parcel_id: str) -> dict[str, str]:
        """Ask the depot's own records where a parcel was last seen. Slower than tracking."""
        return {"last_seen": found(self.places, parcel_id, "parcel")}

    def tell_customer(self, parcel_id: str, place: str) -> str:
        """Tell the customer where the parcel is."""
        return f"Told: {parcel_id} is at {place}."


def _fallback(seed: int) -> World:
    draw = Draw(seed)
    parcels = _Parcels({draw.id("P-", 5): f"{draw.choice(CITIES)}, gate {draw.randrange(2, 60)}" for _ in range(3)})
    parcel_id, place = next(iter(parcels.places.items()))
    workflow = Workflow(
        "fallback",
        tools=[read(parcels.track_parcel), read(parcels.ask_depot), parcels.tell_customer],
        terminal_tool="tell_customer",
        grounded={"tell_customer": ("parcel_id", "place")},
        system_prompt=SYSTEM,
    )
    wanted = {"parcel_id": parcel_id, "place": place}
    return World(
        workflow=workflow,
        messages=(f"Tell the customer where parcel {parcel_id} is.",),
        right=lambda trajectory: sent(trajectory, "tell_customer", **wanted),
        harm=lambda calls: miswritten(calls, "tell_customer", **wanted),
    )


RECOVERY = (
    *twins(
        "error_recovery",
        "the format that an argument must have is only told by the error",
        _error_recovery,
        ideal_calls=3,
        tags={"plumbing", "recovery"},
        not_counted=_NEEDS_RECOVERY,
    ),
    Scenario(
        name="retry_later",
        about="the first call fails for the time being; the same call again succeeds",
        world=_retry_later,
        ideal_calls=3,
        tags=frozenset({"recovery"}),
        context_tokens=4096,
        not_counted=_NEEDS_RECOVERY,
    ),
    Scenario(
        name="fallback",
        about="the first source is gone for good; another has the answer",
        world=_fallback,
        ideal_calls=3,
        tags=frozenset({"recovery"}),
        context_tokens=4096,
    ),
)
