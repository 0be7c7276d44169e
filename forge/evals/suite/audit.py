"""An audit of payments: amounts in two currencies, a boundary that is met exactly, and a vendor under another name."""

from dataclasses import dataclass
from functools import partial

from msgspec import Struct

from forge import Workflow
from forge.evals.scenario import Trajectory, World
from forge.evals.suite.checks import first_of, last_call, looked_up, same, sent
from forge.evals.suite.drawing import Draw
from forge.evals.suite.lookups import SYSTEM, found, read
from forge.evals.suite.twin_scenarios import twins
from stages.rules import Limits

_APPROVED = ("Acme Corp", "Delta Paper", "Northgate Freight")
_UNKNOWN = ("Wonder Foods", "Krill & Sons", "Velvet Media", "Quarry Rentals", "Sunbeam Travel", "Tallow Print")
_RATE = 1.1
_LIMIT = 5_000


class _Payment(Struct, frozen=True):
    id: str
    vendor: str
    amount: float
    currency: str = "USD"


@dataclass(frozen=True)
class _Books:
    """Payments, the first of which are to be flagged; `alias` is another name of the first approved vendor."""

    year: int
    quarter: str
    flagged: tuple[_Payment, ...]
    payments: tuple[_Payment, ...]
    alias: str
    lenient: bool

    def list_transactions(self, quarter: str, year: int) -> list[_Payment]:
        """List the payments of a quarter.

        Args:
            quarter: Q1 to Q4.
            year: As in 2024.
        """
        if self.lenient or (quarter.strip().upper(), year) == (self.quarter, self.year):
            return list(self.payments)
        return []

    def get_approved_vendors(self) -> list[str]:
        """List the names of the approved vendors."""
        return list(_APPROVED)

    def get_vendor_details(self, vendor: str) -> dict[str, str]:
        """Look up under which name a vendor is registered."""
        names = {payment.vendor: payment.vendor for payment in self.payments} | {self.alias: _APPROVED[0]}
        return {"registered_name": found(names, vendor, "vendor")}

    def currency_convert(self, amount: float, currency: str) -> dict[str, float]:
        """Convert an amount to US dollars."""
        return {"usd": round(amount * found({"EUR": _RATE, "USD": 1.0}, currency, "currency"), 2)}

    def categorize_expense(self, vendor: str) -> dict[str, str]:
        """Look up what sort of expense a vendor's bills are."""
        return {"vendor": vendor, "category": "services"}

    def lookup_transaction(self, transaction_id: str) -> _Payment:
        """Look up a single payment."""
        return found({payment.id: payment for payment in self.payments}, transaction_id, "transaction")

    def submit_audit_report(self, transaction_ids: list[str], total_flagged_usd: float, top_vendor: str) -> str:
        """Submit the audit.

        Args:
            transaction_ids: The ids of all flagged payments.
            total_flagged_usd: What they come to together, in US dollars.
            top_vendor: The vendor with the largest flagged payment.
        """
        return f"{len(transaction_ids)} payments flagged, {total_flagged_usd} US dollars, most to {top_vendor}."


def _drawn(draw: Draw, *, lenient: bool) -> _Books:
    vendors = draw.sample(_UNKNOWN, 4)

    def paid(vendor: str, amount: float, currency: str = "USD") -> _Payment:
        return _Payment(draw.id("TX-"), vendor, amount, currency)

    flagged = (
        paid(vendors[0], draw.randrange(9_000, 14_000, 100)),
        paid(vendors[1], _LIMIT),
        paid(vendors[2], draw.randrange(4_600, 4_950, 10), "EUR"),
    )
    alias = f"{draw.choice(('Apex', 'Zenith', 'Orion'))} Holding"
    others = (
        paid(alias, draw.randrange(15_000, 19_000, 100)),
        paid(vendors[3], _LIMIT - 1),
        paid(vendors[1], draw.randrange(300, 4_000, 100)),
        paid(vendors[3], draw.randrange(3_000, 4_400, 100), "EUR"),
        *(paid(draw.choice(_APPROVED), draw.randrange(500, 20_000, 100)) for _ in range(6)),
    )
    mixed = draw.sample([*flagged, *others], len(flagged) + len(others))
    return _Books(draw.randrange(2019, 2026), f"Q{draw.randrange(1, 5)}", flagged, tuple(mixed), alias, lenient)


def _argument_transformation(seed: int, *, stateful: bool) -> World:
    books = _drawn(Draw(seed), lenient=not stateful)
    lists = (read(books.list_transactions), read(books.get_approved_vendors))
    one_by_one = (read(books.get_vendor_details), read(books.currency_convert))
    distractors = (read(books.categorize_expense), read(books.lookup_transaction))
    workflow = Workflow(
        "argument_transformation",
        tools=[*lists, *one_by_one, *distractors, books.submit_audit_report],
        terminal_tool="submit_audit_report",
        required_steps=["list_transactions", "get_approved_vendors"],
        grounded={"submit_audit_report": ("transaction_ids", "top_vendor")},
        calculated={"submit_audit_report": ("total_flagged_usd",)},
        system_prompt=SYSTEM,
        limits=Limits(max_iterations=15),
    )
    message = (
        f"Audit the payments of {books.quarter} {books.year}: flag each payment that comes to {_LIMIT} US dollars or "
        "more and went to a vendor who is not approved. A vendor who is not on the list may be registered under a name "
        "that is. Submit the report."
    )
    return World(workflow=workflow, messages=(message,), right=partial(_audited, books))


def _audited(books: _Books, trajectory: Trajectory) -> str:
    report = last_call(trajectory, "submit_audit_report")
    given = report.arguments.get("transaction_ids") if report else None
    ids = sorted(given) if isinstance(given, list) else None
    wanted = sorted(payment.id for payment in books.flagged)
    total = sum(round(payment.amount * (_RATE if payment.currency == "EUR" else 1), 2) for payment in books.flagged)
    problem = "" if same(ids, wanted) else f"the flagged payments are {ids}, not {wanted}"
    return first_of(
        problem,
        sent(trajectory, "submit_audit_report", total_flagged_usd=total, top_vendor=books.flagged[0].vendor),
        "" if books.lenient else looked_up(trajectory, "get_vendor_details", vendor=books.alias),
    )


AUDIT = twins(
    "argument_transformation",
    "payments are converted, compared with a limit and summed up; one vendor has another name",
    _argument_transformation,
    ideal_calls=8,
    tags={"model_quality", "reasoning", "advanced"},
)
