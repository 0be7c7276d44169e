"""An old bookkeeping service: each call wants its values in another form, and says so only when it refuses them."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from forge import Workflow
from forge.evals.scenario import Trajectory, World
from forge.evals.suite.checks import first_of, told, written
from forge.evals.suite.drawing import Draw
from forge.evals.suite.lookups import SYSTEM, read
from forge.evals.suite.twin_scenarios import twins
from stages.rules import Limits

_DATE = re.compile(r"\d{4}-\d\d-\d\d")
_NAMES = ("Northwind", "Bluefin", "Karst", "Meridian", "Palisade", "Tamarack")
_TOOLS = (
    "legacy_list_accounts",
    "legacy_get_balance",
    "legacy_get_transactions",
    "legacy_categorize_spend",
    "legacy_check_compliance",
    "legacy_aggregate_subtotal",
)


@dataclass(frozen=True)
class _Bookkeeping:
    """Accounts by name; the first has these payments. `lenient`: any account's id will do."""

    accounts: dict[str, int]
    year: int
    payments: tuple[int, ...]
    balance: int
    status: str
    lenient: bool

    def legacy_list_accounts(self, page: int, page_size: int) -> object:
        """List the accounts, a page at a time; the first page is 1."""
        if page < 1 or not 1 <= page_size <= 50:
            return "ERROR: page counts from 1, page_size is 1 to 50"
        return [{"id": number, "name": name} for name, number in self.accounts.items()][: page_size if page == 1 else 0]

    def legacy_get_balance(self, account: str) -> object:
        """Get the balance of an account."""
        if not re.fullmatch(r"ACC-\d+", account):
            return "ERROR: account is ACC- and the account's number"
        return {"balance": self.balance} if self._is(account.removeprefix("ACC-")) else "ERROR: no such account"

    def legacy_get_transactions(self, account_id: int, start: str, end: str) -> object:
        """Get the payments of an account between two dates."""
        if not (_DATE.fullmatch(start) and _DATE.fullmatch(end)):
            return "ERROR: dates are YYYY-MM-DD"
        whole = start <= f"{self.year}-01-01" and f"{self.year}-12-31" <= end
        return {"payments": self.payments if whole else []} if self._is(account_id) else "ERROR: no such account"

    def legacy_categorize_spend(self, account_id: int, category: str) -> object:
        """Get what an account spent on services, hardware, travel or anything else."""
        if category not in ("SVCS", "HRDW", "TRVL", "MISC"):
            return "ERROR: category is SVCS, HRDW, TRVL or MISC"
        return {"share": "all of it" if category == "SVCS" else "nothing"} if self._is(account_id) else "ERROR: unknown"

    def legacy_check_compliance(self, region: str, period: str) -> object:
        """Check whether the accounts of a region met the rules in a period."""
        if not re.fullmatch(r"[a-z]{2}", region):
            return "ERROR: region is two lower-case letters"
        right = re.fullmatch(r"\d{4}-Q[1-4]", period)
        return {"period": period, "status": self.status} if right else "ERROR: period is YYYY-QN, as in 2020-Q1"

    def legacy_aggregate_subtotal(self, amounts: str) -> object:
        """Add amounts up."""
        if not re.fullmatch(r"\d+\.\d\d(\|\d+\.\d\d)+", amounts):
            return "ERROR: amounts have two decimals and are joined by |, as in 1.00|2.50"
        return {"subtotal": sum(float(amount) for amount in amounts.split("|"))}

    def legacy_submit_audit(self, report: str) -> str:
        """Submit the audit.

        Args:
            report: The sum of the payments, how many they are, and whether the rules were met.
        """
        return f"Submitted: {report}"

    def _is(self, number: str | int) -> bool:
        return self.lenient or str(number) == str(next(iter(self.accounts.values())))


def _inconsistent_api_recovery(seed: int, *, stateful: bool) -> World:
    draw = Draw(seed)
    numbers = draw.sample(range(1_000, 9_999), 3)
    books = _Bookkeeping(
        accounts=dict(zip(draw.sample(_NAMES, 3), numbers, strict=True)),
        year=draw.randrange(2019, 2026),
        payments=tuple(draw.sample(range(1_500, 20_000, 50), draw.randrange(3, 7))),
        balance=draw.randrange(10_000, 90_000),
        status=draw.choice(("GREEN", "AMBER", "RED")),
        lenient=not stateful,
    )
    first = next(iter(books.accounts))
    reads: list[Callable[..., object]] = [
        books.legacy_list_accounts,
        books.legacy_get_balance,
        books.legacy_get_transactions,
    ]
    reads += [books.legacy_categorize_spend, books.legacy_check_compliance, books.legacy_aggregate_subtotal]
    workflow = Workflow(
        "inconsistent_api_recovery",
        tools=[*map(read, reads), books.legacy_submit_audit],
        terminal_tool="legacy_submit_audit",
        required_steps=["legacy_list_accounts"],
        system_prompt=SYSTEM,
        limits=Limits(max_iterations=20),
    )
    message = (
        f"Audit the account {first} for the whole year {books.year}: get its balance, its payments and what it spent "
        "on services, check the compliance of the region FR in the fourth quarter, and have the payments added up. "
        "Submit the sum of the payments, how many there are, and the status of the compliance check."
    )
    return World(workflow=workflow, messages=(message,), right=partial(_audited, books))


def _audited(books: _Bookkeeping, trajectory: Trajectory) -> str:
    unused = [tool for tool in _TOOLS if all(str(call.result).startswith("ERROR") for call in trajectory.of(tool))]
    others = {"GREEN", "AMBER", "RED"} - {books.status}
    facts = (sum(books.payments), len(books.payments), books.status)
    return first_of(
        f"{' and '.join(unused)} gave no result" if unused and not books.lenient else "",
        told(written(trajectory, "legacy_submit_audit", "report"), facts, sorted(others)),
    )


LEGACY = twins(
    "inconsistent_api_recovery",
    "six services, each with a convention of its own that only its errors tell",
    _inconsistent_api_recovery,
    ideal_calls=12,
    tags={"model_quality", "reasoning", "advanced", "recovery"},
)
