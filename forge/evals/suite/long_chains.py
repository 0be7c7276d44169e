"""Chains of five to twelve steps: moved data, converted amounts, inconsistent conventions."""

import re
from collections.abc import Callable, Mapping, Sequence

from msgspec import Struct

from forge import TieredCompact
from forge.evals.scenario import Scenario, Trajectory, World
from forge.evals.suite.helpers import (
    MEDICINES,
    Check,
    Draw,
    Fact,
    action,
    declared,
    every,
    fixed,
    found,
    last_call,
    looked_up,
    lookup,
    mentions,
    read,
    same,
    sent,
    twins,
    world,
    written,
    wrote,
)
from forge.workflow.workflow import Context
from stages.rules import Limits

_DEPARTMENTS = ("engineering", "finance", "logistics", "research", "procurement", "legal")
_GROUPS = ("payments-prod", "internal-apis", "data-lake", "build-farm", "vault-readers", "edge-nodes")


class _Employee(Struct, frozen=True):
    """An employee; `groups` and `band` as of now, and as they were once."""

    name: str
    department: str
    clearance: str
    contact: str
    phone: str
    band: str
    old_band: str
    groups: tuple[str, ...]
    old_groups: tuple[str, ...]

    @classmethod
    def drawn(cls, draw: Draw) -> "_Employee":
        bands, groups = draw.sample(range(2, 9), 2), draw.sample(_GROUPS, 2)
        return cls(
            name=draw.person(),
            department=draw.choice(_DEPARTMENTS),
            clearance=f"L{draw.randrange(1, 6)}",
            contact=draw.person(),
            phone=f"555-{draw.randrange(1000, 9999)}",
            band=f"B{bands[0]}",
            old_band=f"B{bands[1]}",
            groups=(f"{groups[0]}-v3", f"{groups[1]}-v2"),
            old_groups=(f"{groups[0]}-v1", f"{groups[1]}-v1"),
        )


@twins(
    "what is wanted has been moved, and the place where it was says where to",
    ideal_calls=5,
    tags={"model_quality", "reasoning"},
)
def data_gap_recovery(seed: int, *, stateful: bool) -> World:
    return _personnel("data_gap_recovery", seed, stateful=stateful, extended=False)


@twins(
    "what is wanted has been moved; among twelve tools, three of which are out of date",
    ideal_calls=8,
    tags={"model_quality", "reasoning", "advanced"},
)
def data_gap_recovery_extended(seed: int, *, stateful: bool) -> World:
    return _personnel("data_gap_recovery_extended", seed, stateful=stateful, extended=True)


def _personnel(name: str, seed: int, *, stateful: bool, extended: bool) -> World:
    draw = Draw(seed)
    employees = {draw.id("E-"): _Employee.drawn(draw) for _ in range(2)}
    employee_id, one = next(iter(employees.items()))

    def of_employee(name: str, about: str, known: Callable[[_Employee], object]) -> Callable[..., object]:
        entries = {number: known(employee) for number, employee in employees.items()}
        return lookup(name, about, lenient=not stateful, employee_id=entries)

    tools = [
        of_employee(
            "get_employee",
            "Look up an employee: name and department.",
            lambda one: {"name": one.name, "department": one.department},
        ),
        of_employee(
            "security_audit",
            "Read the last security audit of an employee: clearance, and access groups as they were at the time.",
            lambda one: {
                "clearance": one.clearance,
                "audited": "three years ago",
                "access_groups_then": one.old_groups,
            },
        ),
        of_employee(
            "personnel_file",
            "Read the personnel file of an employee: contract and emergency contact.",
            lambda _: {
                "contract": "permanent",
                "emergency_contact": "no longer kept here; see the onboarding records",
            },
        ),
        of_employee(
            "onboarding_records",
            "Read what an employee filled in on the first day.",
            lambda one: {"laptop": "yes", "emergency_contact": f"{one.contact}, {one.phone}"},
        ),
        of_employee(
            "compliance_check",
            "Check whether an employee has taken the yearly courses.",
            lambda _: {"courses": "all taken"},
        ),
        of_employee(
            "hr_directory",
            "Look up an employee's office: room and extension.",
            lambda _: {"room": "2.14", "extension": "88"},
        ),
    ]
    more = [
        of_employee(
            "compensation_history",
            "Read the salary bands of an employee over the years.",
            lambda _: {"deprecated": "Closed last year. Salary bands are in compensation_v2."},
        ),
        of_employee("compensation_v2", "Read the compensation of an employee.", lambda one: {"salary_band": one.band}),
        of_employee(
            "project_assignments",
            "Read which projects an employee works on, and the access that comes with them.",
            lambda one: {"projects": 2, "active_access_groups": one.groups},
        ),
        of_employee(
            "access_control",
            "Read the access groups of an employee.",
            lambda _: {"deprecated": "Access is given by project now: see project_assignments."},
        ),
        of_employee(
            "legacy_records",
            "Read what the old system had on an employee; nobody has updated it since.",
            lambda one: {"salary_band": one.old_band, "access_groups": one.old_groups},
        ),
    ]
    submit = action(
        "submit_report",
        "Submit the report on an employee.",
        "Report on {employee_name}: {report}",
        employee_name=(str, "First and family name."),
        report=(str, "All that was asked for."),
    )
    facts: list[Fact] = [one.department, one.clearance, one.contact, one.phone]
    never: list[Fact] = []
    wanted = "the department, the clearance, and the emergency contact with name and phone"
    if extended:
        tools += more
        facts += [one.band, *one.groups]
        never += [one.old_band, *one.old_groups]
        wanted += "; also the salary band and all access groups as they are today"
    draw.shuffle(tools)
    sources = ("security_audit", "onboarding_records") if stateful else ()
    return world(
        name,
        f"Submit a report on employee {employee_id}: {wanted}.",
        tools=[*tools, submit],
        terminal_tool="submit_report",
        required_steps=["get_employee"],
        limits=Limits(max_iterations=20 if extended else 15),
        right=every(
            *(looked_up(source, employee_id=employee_id) for source in sources),
            sent("submit_report", employee_name=one.name),
            wrote("submit_report", "report", facts, never),
        ),
    )


_APPROVED = ("Acme Corp", "Delta Paper", "Northgate Freight")
_UNKNOWN = ("Wonder Foods", "Krill & Sons", "Velvet Media", "Quarry Rentals", "Sunbeam Travel", "Tallow Print")
_RATE = 1.1
_LIMIT = 5_000


class _Payment(Struct, frozen=True):
    id: str
    vendor: str
    amount: float
    currency: str = "USD"


@twins(
    "payments are converted, compared with a limit and summed up; one vendor has another name",
    ideal_calls=8,
    tags={"model_quality", "reasoning", "advanced"},
)
def argument_transformation(seed: int, *, stateful: bool) -> World:
    draw = Draw(seed)
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
    payments = draw.sample([*flagged, *others], len(flagged) + len(others))
    asked_year, asked_quarter = draw.randrange(2019, 2026), f"Q{draw.randrange(1, 5)}"

    @read
    def list_transactions(quarter: str, year: int) -> list[_Payment]:
        """List the payments of a quarter.

        Args:
            quarter: Q1 to Q4.
            year: As in 2024.
        """
        asked = (quarter.strip().upper(), year) == (asked_quarter, asked_year)
        return payments if asked or not stateful else []

    names = {payment.vendor: payment.vendor for payment in payments} | {alias: _APPROVED[0]}
    get_vendor_details = lookup(
        "get_vendor_details",
        "Look up under which name a vendor is registered.",
        vendor={vendor: {"registered_name": name} for vendor, name in names.items()},
    )

    @read
    def currency_convert(amount: float, currency: str) -> dict[str, float]:
        """Convert an amount to US dollars."""
        return {"usd": round(amount * found({"EUR": _RATE, "USD": 1.0}, currency, "currency"), 2)}

    sort = {"vendor": "{vendor}", "category": "services"}
    by_id = {payment.id: payment for payment in payments}
    lookup_transaction = lookup("lookup_transaction", "Look up a single payment.", transaction_id=by_id)

    def submit_audit_report(transaction_ids: list[str], total_flagged_usd: float, top_vendor: str) -> str:
        """Submit the audit.

        Args:
            transaction_ids: The ids of all flagged payments.
            total_flagged_usd: What they come to together, in US dollars.
            top_vendor: The vendor with the largest flagged payment.
        """
        return f"{len(transaction_ids)} payments flagged, {total_flagged_usd} US dollars, most to {top_vendor}."

    def flagged_all(trajectory: Trajectory) -> str:
        report = last_call(trajectory, "submit_audit_report")
        given = report.arguments.get("transaction_ids") if report else None
        ids = sorted(given) if isinstance(given, list) else None
        wanted = sorted(payment.id for payment in flagged)
        return "" if same(ids, wanted) else f"the flagged payments are {ids}, not {wanted}"

    total = sum(round(payment.amount * (_RATE if payment.currency == "EUR" else 1), 2) for payment in flagged)
    aliases: list[Check] = [looked_up("get_vendor_details", vendor=alias)] if stateful else []
    message = (
        f"Audit the payments of {asked_quarter} {asked_year}: flag each payment that comes to {_LIMIT} US dollars or "
        "more and went to a vendor who is not approved. A vendor who is not on the list may be registered under a name "
        "that is. Submit the report."
    )
    return world(
        "argument_transformation",
        message,
        tools=[
            list_transactions,
            fixed("get_approved_vendors", "List the names of the approved vendors.", list(_APPROVED)),
            get_vendor_details,
            currency_convert,
            fixed("categorize_expense", "Look up what sort of expense a vendor's bills are.", sort, vendor=str),
            lookup_transaction,
            submit_audit_report,
        ],
        terminal_tool="submit_audit_report",
        required_steps=["list_transactions", "get_approved_vendors"],
        grounded={"submit_audit_report": ("transaction_ids", "top_vendor")},
        calculated={"submit_audit_report": ("total_flagged_usd",)},
        limits=Limits(max_iterations=15),
        right=every(
            flagged_all,
            sent("submit_audit_report", total_flagged_usd=total, top_vendor=flagged[0].vendor),
            *aliases,
        ),
    )


_DATE = re.compile(r"\d{4}-\d\d-\d\d")
_ACCOUNTS = ("Northwind", "Bluefin", "Karst", "Meridian", "Palisade", "Tamarack")
_LEGACY = (
    "legacy_list_accounts",
    "legacy_get_balance",
    "legacy_get_transactions",
    "legacy_categorize_spend",
    "legacy_check_compliance",
    "legacy_aggregate_subtotal",
)


@twins(
    "six services, each with a convention of its own that only its errors tell",
    ideal_calls=12,
    tags={"model_quality", "reasoning", "advanced", "recovery"},
)
def inconsistent_api_recovery(seed: int, *, stateful: bool) -> World:
    draw = Draw(seed)
    numbers = draw.sample(range(1_000, 9_999), 3)
    accounts = dict(zip(draw.sample(_ACCOUNTS, 3), numbers, strict=True))
    audited, asked_year = next(iter(accounts)), draw.randrange(2019, 2026)
    payments = tuple(draw.sample(range(1_500, 20_000, 50), draw.randrange(3, 7)))
    balance, status = draw.randrange(10_000, 90_000), draw.choice(("GREEN", "AMBER", "RED"))

    def known(number: str | int) -> bool:
        return not stateful or str(number) == str(numbers[0])

    @read
    def legacy_list_accounts(page: int, page_size: int) -> object:
        """List the accounts, a page at a time; the first page is 1."""
        if page < 1 or not 1 <= page_size <= 50:
            return "ERROR: page counts from 1, page_size is 1 to 50"
        return [{"id": number, "name": name} for name, number in accounts.items()][: page_size if page == 1 else 0]

    @read
    def legacy_get_balance(account: str) -> object:
        """Get the balance of an account."""
        if not re.fullmatch(r"ACC-\d+", account):
            return "ERROR: account is ACC- and the account's number"
        return {"balance": balance} if known(account.removeprefix("ACC-")) else "ERROR: no such account"

    @read
    def legacy_get_transactions(account_id: int, start: str, end: str) -> object:
        """Get the payments of an account between two dates."""
        if not (_DATE.fullmatch(start) and _DATE.fullmatch(end)):
            return "ERROR: dates are YYYY-MM-DD"
        whole = start <= f"{asked_year}-01-01" and f"{asked_year}-12-31" <= end
        return {"payments": payments if whole else []} if known(account_id) else "ERROR: no such account"

    @read
    def legacy_categorize_spend(account_id: int, category: str) -> object:
        """Get what an account spent on services, hardware, travel or anything else."""
        if category not in ("SVCS", "HRDW", "TRVL", "MISC"):
            return "ERROR: category is SVCS, HRDW, TRVL or MISC"
        return {"share": "all of it" if category == "SVCS" else "nothing"} if known(account_id) else "ERROR: unknown"

    @read
    def legacy_check_compliance(region: str, period: str) -> object:
        """Check whether the accounts of a region met the rules in a period."""
        if not re.fullmatch(r"[a-z]{2}", region):
            return "ERROR: region is two lower-case letters"
        right = re.fullmatch(r"\d{4}-Q[1-4]", period)
        return {"period": period, "status": status} if right else "ERROR: period is YYYY-QN, as in 2020-Q1"

    @read
    def legacy_aggregate_subtotal(amounts: str) -> object:
        """Add amounts up."""
        if not re.fullmatch(r"\d+\.\d\d(\|\d+\.\d\d)+", amounts):
            return "ERROR: amounts have two decimals and are joined by |, as in 1.00|2.50"
        return {"subtotal": sum(float(amount) for amount in amounts.split("|"))}

    def legacy_submit_audit(report: str) -> str:
        """Submit the audit.

        Args:
            report: The sum of the payments, how many they are, and whether the rules were met.
        """
        return f"Submitted: {report}"

    def all_answered(trajectory: Trajectory) -> str:
        unused = [tool for tool in _LEGACY if all(str(call.result).startswith("ERROR") for call in trajectory.of(tool))]
        return f"{' and '.join(unused)} gave no result" if unused and stateful else ""

    facts = (sum(payments), len(payments), status)
    message = (
        f"Audit the account {audited} for the whole year {asked_year}: get its balance, its payments and what it spent "
        "on services, check the compliance of the region FR in the fourth quarter, and have the payments added up. "
        "Submit the sum of the payments, how many there are, and the status of the compliance check."
    )
    return world(
        "inconsistent_api_recovery",
        message,
        tools=[
            legacy_list_accounts,
            legacy_get_balance,
            legacy_get_transactions,
            legacy_categorize_spend,
            legacy_check_compliance,
            legacy_aggregate_subtotal,
            legacy_submit_audit,
        ],
        terminal_tool="legacy_submit_audit",
        required_steps=["legacy_list_accounts"],
        limits=Limits(max_iterations=20),
        right=every(
            all_answered, wrote("legacy_submit_audit", "report", facts, sorted({"GREEN", "AMBER", "RED"} - {status}))
        ),
    )


class _Candidate(Struct, frozen=True):
    """A candidate; a good rationale has one of `words` about the obstacle; empty if there is none."""

    years: int
    skills: str
    obstacle: str
    words: tuple[str, ...]


_STRONG = "all that the role asks for, and has done it on a larger scale"
_KINDS = (
    (8, "all that the role asks for, and has taught it", "none; can start next month", ()),
    (14, _STRONG, "a non-compete clause forbids this work for another year", ("non-compete", "clause", "compete")),
    (12, _STRONG, "has no visa, and none can be had before the role begins", ("visa",)),
    (11, "all that the role asks for", "only comes as the team's lead", ("lead",)),
    (3, "half of what the role asks for", "none; can start at once", ()),
)


@twins(
    "the strongest of five candidates cannot take the role; the decision says why",
    ideal_calls=11,
    tags={"model_quality", "reasoning", "advanced"},
)
def grounded_synthesis(seed: int, *, stateful: bool) -> World:
    draw = Draw(seed)
    candidates = {draw.person(): _Candidate(*kind) for kind in _KINDS}
    chosen = next(iter(candidates))
    title = draw.choice(("data engineer", "accountant", "toolmaker", "translator", "surveyor", "buyer"))
    role = draw.id("R-")
    pool = [{"name": name, "years": candidates[name].years} for name in draw.sample(list(candidates), len(candidates))]
    team = {"lead": "the team has a lead, who stays", "wants": "somebody whom they can learn from"}
    tools = [
        lookup(
            "get_open_role",
            "Read what an open role asks for.",
            role_id={role: {"title": title, "begins": "in six weeks"}},
        ),
        lookup(
            "get_candidate_pool",
            "List the candidates for a role, with their years of experience.",
            role_id={role: pool},
        ),
        lookup("get_team_dynamics", "Read about the team that a role is in.", role_id={role: team}),
        lookup(
            "get_skill_summary",
            "Read what a candidate can do.",
            candidate={name: {"skills": one.skills} for name, one in candidates.items()},
        ),
        lookup(
            "get_compatibility_check",
            "Check whether anything keeps a candidate from taking the role.",
            candidate={name: {"obstacle": one.obstacle} for name, one in candidates.items()},
        ),
        action(
            "submit_hiring_decision",
            "Submit whom to hire.",
            "{candidate} is proposed: {rationale}",
            candidate=(str, "First and family name."),
            rationale=(str, "Why this one; and of the more experienced, by name, what speaks against them."),
        ),
    ]
    blocked = {name: one.words for name, one in candidates.items() if one.words}

    def says_why(trajectory: Trajectory) -> str:
        rationale = written(trajectory, "submit_hiring_decision", "rationale")
        named = any(_rejected(rationale, name, words) for name, words in blocked.items())
        return "" if named else "the rationale names nobody with what speaks against them"

    message = (
        f"Decide whom to hire for role {role}. It must be somebody whom nothing keeps from taking it, who "
        "fits the team, and can do what the role asks for."
    )
    return world(
        "grounded_synthesis",
        message,
        tools=tools,
        terminal_tool="submit_hiring_decision",
        required_steps=["get_candidate_pool"],
        grounded={"submit_hiring_decision": ("candidate",)},
        limits=Limits(max_iterations=20),
        right=every(
            sent("submit_hiring_decision", candidate=chosen),
            says_why,
            *(looked_up("get_compatibility_check", candidate=name) for name in blocked if stateful),
        ),
    )


def _rejected(rationale: str, name: str, words: Sequence[str]) -> bool:
    said = any(mentions(rationale, word) for word in words)
    return said and any(mentions(rationale, part) for part in (name, *name.split()))


# Ten steps of a treatment, each with an id from the previous one, in contexts from large enough for all of them down to
# two. Step 7 needs an id from step 1, steps 8 and 9 one from step 5: by then compaction may have cut those results,
# which can be read again with `recall`.

_STEPS = (
    "patient_lookup",
    "pull_records",
    "order_labs",
    "review_imaging",
    "request_referral",
    "check_pharmacy",
    "verify_insurance",
    "request_prior_auth",
    "schedule_appointment",
)
_CASE_ASSISTANT = (
    "You are a clinic's case assistant. Do one step after the other, each once, with the ids that the steps before "
    f"gave: {', '.join(_STEPS)}; then submit_treatment_plan."
)
_FINDINGS = ("cortical thinning", "mild scarring", "a small cyst", "early calcification", "reduced perfusion")
_SPECIALTIES = ("nephrology", "cardiology", "endocrinology", "pulmonology", "rheumatology")
_NOTES = (
    "The visit before this one was uneventful. The patient walks to work, sleeps well and has given up smoking. ",
    "Nothing else in the file stands out; the family history was taken down in the first year and has not changed. ",
    "The staff were asked to write everything down, so that the next colleague finds what was done, when and by whom. ",
    "All of this was entered by hand and read over by a second person, as the rules of the house have it. ",
)


def _step(number: int, about: str, result: dict[str, object], **known: tuple[str, object]) -> Callable[..., object]:
    """The step's tool, which only accepts these values; each comes with its name in errors.

    The first argument is checked last.
    """

    def run(given: Mapping[str, object]) -> object:
        first, *others = known.items()
        for argument, (what, value) in (*others, first):
            found({str(value): True}, str(given[argument]), what)
        notes = "".join(_NOTES[(number - 1 + line) % len(_NOTES)] for line in range(10))  # padding
        return {**result, "notes": notes.strip()}

    arguments = {argument: type(value) for argument, (_, value) in known.items()}
    return declared(_STEPS[number - 1], f"Step {number}: {about}", arguments, run)


def _compaction_chain(seed: int) -> World:
    draw = Draw(seed)
    patient, mrn = draw.person(), draw.id("", 5)
    records, labs, imaging, referral, prescription, policy, authorization = map(
        draw.id, ("RC-", "LB-", "IM-", "RF-", "RX-", "PL-", "AU-")
    )
    hba1c, finding = draw.randrange(65, 120) / 10, draw.choice(_FINDINGS)
    specialty, specialist, medicine = draw.choice(_SPECIALTIES), f"Dr. {draw.person()}", draw.choice(MEDICINES)
    visit = {"referral_id": referral, "specialist": specialist, "prescription_id": prescription}
    tools: list[Callable[..., object]] = [
        read(_step(1, "find a patient by name.", {"mrn": mrn, "records_id": records}, name=("patient", patient))),
        read(_step(2, "read the patient's records.", {"lab_order_id": labs}, records_id=("record", records))),
        read(
            _step(
                3,
                "order the laboratory and read its values.",
                {"hba1c": hba1c, "imaging_id": imaging},
                lab_order_id=("laboratory order", labs),
            )
        ),
        read(
            _step(4, "review the images.", {"finding": finding, "refer_to": specialty}, imaging_id=("image", imaging))
        ),
        _step(
            5,
            "refer the patient to a specialist, with the finding of step 4.",
            {**visit},
            specialty=("specialty", specialty),
            finding=("finding", finding),
        ),
        read(
            _step(
                6,
                "ask the pharmacy which medicine was prescribed, given the HbA1c of step 3.",
                {"medicine": medicine},
                prescription_id=("prescription", prescription),
                hba1c=("HbA1c", hba1c),
            )
        ),
        _step(
            7,
            "verify the insurance of the patient with that MRN, which step 1 gave.",
            {"policy_id": policy},
            mrn=("patient with the MRN", mrn),
        ),
        _step(
            8,
            "have the insurance authorize the referral of step 5 and the medicine of step 6.",
            {"authorization_id": authorization},
            referral_id=("referral", referral),
            policy_id=("policy", policy),
            medicine=("medicine", medicine),
        ),
        _step(
            9,
            "make the appointment for the referral, with the specialist of step 5.",
            {"appointment": "confirmed"},
            referral_id=("referral", referral),
            authorization_id=("authorization", authorization),
            specialist=("specialist", specialist),
        ),
        action(
            "submit_treatment_plan",
            "Step 10: submit the plan.",
            "Submitted: {summary}",
            summary=(str, "The patient's MRN, the HbA1c, the finding of the images, the specialist and the medicine."),
        ),
    ]

    def all_steps(trajectory: Trajectory) -> str:
        made = tuple(call.tool for call in trajectory.calls if not call.error and call.tool in _STEPS)
        return "" if made == _STEPS else f"the steps done were {', '.join(made)}"

    facts = (mrn, hba1c, finding, specialist.rsplit(maxsplit=1)[-1], medicine)
    return world(
        "compaction_chain",
        f"Take {patient} through all the steps and submit the treatment plan.",
        tools=tools,
        terminal_tool="submit_treatment_plan",
        required_steps=list(_STEPS),
        system_prompt=_CASE_ASSISTANT,
        limits=Limits(max_iterations=20),
        context=Context(compactor=TieredCompact(keep_recent=2, phase_thresholds=(0.6, 0.75, 0.9)), recall=True),
        right=every(all_steps, wrote("submit_treatment_plan", "summary", facts)),
    )


def _chain(name: str, about: str, context_tokens: int, *not_counted: str) -> Scenario:
    return Scenario(
        name=f"compaction_chain_{name}",
        about=about,
        world=_compaction_chain,
        ideal_calls=10,
        tags=frozenset({"seeds", "stateful", "advanced", "compaction"}),
        context_tokens=context_tokens,
        not_counted=frozenset(not_counted),
    )


# The seeds' budgets are for the history alone; these also have room for the tools and a reply. Without compaction the
# history outgrows p2 and p3; a plain loop, which keeps no room for a reply, passes p2.
LONG_CHAINS = (
    *data_gap_recovery,
    *data_gap_recovery_extended,
    *argument_transformation,
    *inconsistent_api_recovery,
    *grounded_synthesis,
    _chain("baseline", "ten steps in a context that holds them all", 8192),
    _chain("p1", "ten steps in a context for which old results are cut short", 5200),
    _chain("p2", "ten steps in a context for which old results are taken out", 4200, "no_compact", "bare"),
    _chain("p3", "ten steps in a context that holds three results", 3600, "no_compact", "bare", "plain"),
)
