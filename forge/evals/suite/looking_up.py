"""The scenarios that forge-guardrails has too, each with a twin: facts looked up and told in two to four steps."""

from collections.abc import Callable

from msgspec import Struct

from forge import ToolResolutionError, tool
from forge.evals.scenario import PerformedCall, Trajectory, World
from forge.evals.suite.helpers import (
    CITIES,
    FIRST_NAMES,
    MEDICINES,
    PRODUCTS,
    Check,
    Draw,
    action,
    every,
    first_of,
    fixed,
    found,
    looked_up,
    lookup,
    read,
    sent,
    twins,
    unused,
    world,
    written,
    wrote,
)
from stages.rules import Limits

# Fictitious countries whose capitals no model knows.
_COUNTRIES = ("Valdoria", "Kestovia", "Ormanth", "Lirande", "Tessaly Isles", "Brunnmark")
_CAPITALS = ("Halvik", "Port Merrow", "Ostrane", "Quillan", "Sarnett", "Dunmoor")


@twins("one look-up, one answer", ideal_calls=2, tags={"plumbing"})
def basic_2step(seed: int, *, stateful: bool) -> World:
    draw = Draw(seed)
    sizes, capitals = draw.sample(range(210_000, 9_000_000, 1_000), 3), draw.sample(_CAPITALS, 3)
    facts = [{"capital": capital, "population": size} for capital, size in zip(capitals, sizes, strict=True)]
    countries = dict(zip(draw.sample(_COUNTRIES, 3), facts, strict=True))
    about = "Get the capital and the population of a country."
    message = (
        f"What is the capital of {next(iter(countries))}, and exactly how many people live in the country? "
        "Summarize it."
    )
    return world(
        "basic_2step",
        message,
        tools=[
            lookup("get_country_info", about, lenient=not stateful, country=countries),
            action("summarize", "Give the user the summary.", "{content}", content=str),
        ],
        terminal_tool="summarize",
        required_steps=["get_country_info"],
        right=wrote("summarize", "content", (capitals[0], sizes[0]), capitals[1:]),
    )


_REGIONS = ("APAC", "EMEA", "LATAM", "Nordics", "DACH", "Iberia")


class _Analysis(Struct, frozen=True):
    growth_percent: int
    best_product: str
    strongest_region: str


@twins("two steps in order before the answer", ideal_calls=3, tags={"plumbing"})
def sequential_3step(seed: int, *, stateful: bool) -> World:
    draw = Draw(seed)
    year = draw.randrange(2019, 2026)
    periods = [(quarter, year) for quarter in draw.sample(range(1, 5), 3)]
    drawn = zip(draw.sample(range(11, 90), 3), draw.sample(PRODUCTS, 3), draw.sample(_REGIONS, 3), strict=True)
    analyses = dict(zip(periods, (_Analysis(*one) for one in drawn), strict=True))
    wanted, *others = analyses.values()
    loaded: list[tuple[int, int]] = []

    @tool(effect="read", repeatable=True)
    def fetch_sales_data(quarter: int, year: int) -> str:
        """Load the sales of a quarter, to be analyzed.

        Args:
            quarter: 1 to 4.
            year: As in 2024.
        """
        if stateful and (quarter, year) not in analyses:
            raise ToolResolutionError(f"There are no sales of quarter {quarter} of {year}.")
        loaded.append((quarter, year))
        return f"The sales of Q{quarter} {year} are loaded."

    @tool(effect="read", repeatable=True, prerequisites=["fetch_sales_data"])
    def analyze_sales() -> _Analysis:
        """Analyze the sales that were loaded."""
        if not loaded:
            raise ToolResolutionError("No sales are loaded.")
        return analyses[loaded[-1]] if stateful else wanted

    quarter = periods[0][0]
    facts = (wanted.growth_percent, wanted.best_product, wanted.strongest_region)
    never = [fact for other in others for fact in (other.best_product, other.strongest_region)]
    reported = wrote("report", "findings", facts, never)
    return world(
        "sequential_3step",
        f"Report on the sales of Q{quarter} {year}: the growth, the best product and the strongest region.",
        tools=[
            fetch_sales_data,
            analyze_sales,
            action("report", "Report the findings to the user.", "{findings}", findings=str),
        ],
        terminal_tool="report",
        required_steps=["fetch_sales_data", "analyze_sales"],
        right=every(looked_up("fetch_sales_data", quarter=quarter, year=year), reported) if stateful else reported,
    )


_PERMISSIONS = (
    *("reports:read", "reports:write", "billing:read", "billing:approve"),
    *("users:admin", "deploy:staging", "deploy:production", "audit:read"),
)


@twins("two of seven tools answer the question; two others write", ideal_calls=3, tags={"model_quality"})
def tool_selection(seed: int, *, stateful: bool) -> World:
    draw = Draw(seed)
    name, other = draw.sample(FIRST_NAMES, 2)
    users = {name: draw.id("U-"), other: draw.id("U-")}
    held, others = draw.sample(_PERMISSIONS, 3), draw.sample(_PERMISSIONS, 3)

    tools: list[Callable[..., object]] = [
        action("run_command", "Run a shell command.", "{command}: done", command=str),
        action("send_email", "Send an e-mail.", "Sent to {to}: {body}", to=str, body=str),
        fixed("search_web", "Search the web.", ["No page matches {query!r}."], query=str),
        fixed("read_file", "Read a file.", "{path} is empty.", path=str),
        fixed("list_directory", "List the files of a folder.", ["{path}/notes.txt", "{path}/old"], path=str),
        lookup(
            "lookup_user",
            "Find a user's id by first name.",
            what="user",
            lenient=not stateful,
            name={user: {"user_id": user_id} for user, user_id in users.items()},
        ),
        lookup(
            "get_permissions",
            "Get the permissions of a user by id.",
            lenient=not stateful,
            user_id={users[name]: {"permissions": held}, users[other]: {"permissions": others}},
        ),
    ]
    draw.shuffle(tools)
    said = wrote("respond", "answer", tuple(held), [one for one in _PERMISSIONS if one not in held])
    return world(
        "tool_selection",
        f"What permissions does {name} have? List them all, as they are named.",
        tools=[*tools, action("respond", "Answer the user's question.", "{answer}", answer=str)],
        terminal_tool="respond",
        required_steps=["lookup_user", "get_permissions"],
        right=every(looked_up("get_permissions", user_id=users[name]), said) if stateful else said,
        harm=unused("run_command", "send_email"),
    )


_ORIGINS = ("Estonia", "Portugal", "Vietnam", "Slovenia", "Chile", "Denmark")


class _Item(Struct, frozen=True):
    product: str
    price: int
    made_in: str


@twins("an id from one result is the argument of the next call", ideal_calls=3, tags={"model_quality"})
def argument_fidelity(seed: int, *, stateful: bool) -> World:
    draw = Draw(seed)
    origins, names = draw.sample(_ORIGINS, 3), draw.sample(PRODUCTS, 3)
    drawn = zip(names, draw.sample(range(150, 4000, 7), 3), origins, strict=True)
    items = {draw.id("ENT-"): _Item(*one) for one in drawn}
    ids = {item.product: {"entity_id": entity_id} for entity_id, item in items.items()}
    (entity_id, item), *others = items.items()
    tools = [
        lookup(
            "lookup_entity",
            "Look up a product's entity id by its name.",
            what="product",
            lenient=not stateful,
            name=ids,
        ),
        lookup("fetch_details", "Fetch the details of an entity by its id.", lenient=not stateful, entity_id=items),
        action("present", "Present a summary to the user.", "{summary}", summary=str),
    ]
    never = [fact for _, other in others for fact in (other.price, other.made_in)]
    presented = wrote("present", "summary", (item.product, item.price, item.made_in), never)
    return world(
        "argument_fidelity",
        f"Find the {item.product} in our catalogue, fetch its details, and present its name, price and origin.",
        tools=tools,
        terminal_tool="present",
        required_steps=["lookup_entity", "fetch_details"],
        right=every(looked_up("fetch_details", entity_id=entity_id), presented) if stateful else presented,
    )


_OTHER_MEDICINES = ("Ibrolan", "Naproval", "Calcitrine", "Ferrodan", "Zolamine", "Hepanor")
_RISKS = ("hyperkalemia", "hypotension", "arrhythmia", "bleeding", "drowsiness", "dehydration")


class _Interaction(Struct, frozen=True):
    avoid: str
    risk: str


@twins("four steps, each with a value from the one before", ideal_calls=4, tags={"model_quality"})
def sequential_reasoning(seed: int, *, stateful: bool) -> World:
    draw = Draw(seed)
    patients = {draw.person(): draw.id("PT-") for _ in range(3)}
    medicines = dict(zip(patients.values(), draw.sample(MEDICINES, 3), strict=True))
    drawn = zip(draw.sample(_OTHER_MEDICINES, 3), draw.sample(_RISKS, 3), strict=True)
    interactions = dict(zip(medicines.values(), (_Interaction(*one) for one in drawn), strict=True))
    name, patient = next(iter(patients.items()))
    (medicine, wanted), *others = interactions.items()
    tools = [
        lookup(
            "identify_patient",
            "Find a patient's id by full name.",
            what="patient",
            lenient=not stateful,
            name={one: {"patient_id": patient_id} for one, patient_id in patients.items()},
        ),
        lookup(
            "get_records",
            "Get a patient's records: the medication.",
            after=["identify_patient"],
            lenient=not stateful,
            patient_id={one: {"medication": medication} for one, medication in medicines.items()},
        ),
        lookup(
            "check_interactions",
            "Check what a medication must not be taken with, and why.",
            after=["get_records"],
            lenient=not stateful,
            medication=interactions,
        ),
        action(
            "recommend",
            "File a recommendation in a patient's records.",
            "Filed for {patient_id}: {findings}",
            patient_id=(str, "The patient's id."),
            findings=(str, "The medication, what must not be taken with it, and the risk."),
        ),
    ]

    def harm(calls: tuple[PerformedCall, ...]) -> str:
        filed = [call.arguments.get("patient_id") for call in calls if call.tool == "recommend" and not call.error]
        return next((f"a recommendation was filed for {one}, not {patient}" for one in filed if one != patient), "")

    never = [fact for _, other in others for fact in (other.avoid, other.risk)]
    checked: list[Check] = [looked_up("check_interactions", medication=medicine)] if stateful else []
    return world(
        "sequential_reasoning",
        f"Check the medication of {name} for interactions, and file a recommendation.",
        tools=tools,
        terminal_tool="recommend",
        required_steps=["identify_patient", "get_records", "check_interactions"],
        grounded={"recommend": ("patient_id",)},
        right=every(
            *checked,
            sent("recommend", patient_id=patient),
            wrote("recommend", "findings", (medicine, wanted.avoid, wanted.risk), never),
        ),
        harm=harm,
    )


_SERVICES = ("payments", "checkout", "search", "invoicing", "sign-in", "shipping")
_LIBRARIES = ("ledgerkit", "paywire", "quickform", "geoindex", "mailcore", "tokenbox")
_FIELDS = ("transaction_id", "customer_ref", "postal_code", "currency_code", "session_key", "unit_price")
_BACK = ("roll back", "rollback", "rolled back", "rolling back", "revert", "reverting", "downgrade", "undo", "go back")


@twins(
    "what one look-up shows says which one comes next; another leads nowhere",
    ideal_calls=4,
    tags={"model_quality", "reasoning"},
)
def conditional_routing(seed: int, *, stateful: bool) -> World:
    draw = Draw(seed)
    service, library, field = draw.choice(_SERVICES), draw.choice(_LIBRARIES), draw.choice(_FIELDS)
    alert, minute, errors = draw.id("AL-"), draw.randrange(2, 50), draw.randrange(18, 80)
    began = f"14:{minute + 6:02}"
    curves = {
        "errors": f"0.1 % until {began}, then {errors} % from one minute to the next",
        "load": "even, as on any other day",
        "memory": "even",
    }
    deployment = {
        "deployed": f"14:{minute:02}",
        "changed": f"{library} from v3.8.1 to v4.0.0",
        "release_notes": f"v4.0.0: responses no longer have {field} at the top; it is inside of data now",
    }
    warnings = ["WARN the disk is 71 % full", "WARN a certificate expires in 23 days", "WARN clock drift of 3 ms"]

    def of_service(name: str, about: str, known: object) -> Callable[..., object]:
        return lookup(name, about, lenient=not stateful, service={service: known})

    get_alert = lookup(
        "get_alert",
        "Read an alert: the service that it is about, and what was noticed.",
        lenient=not stateful,
        alert_id={alert: {"service": service, "noticed": f"{errors} % of requests fail"}},
    )
    diagnose = action(
        "diagnose",
        "Hand the diagnosis in.",
        "Diagnosis: {diagnosis} Action: {action}",
        diagnosis=(str, "What caused the alert, down to what exactly has changed."),
        action=(str, "The fastest way back to normal."),
    )

    def thorough(trajectory: Trajectory) -> str:
        looked = [tool for tool in ("get_alert", "check_metrics", "check_deployment") if trajectory.of(tool)]
        return "" if len(looked) == 3 or not stateful else f"only {looked} were looked at"

    return world(
        "conditional_routing",
        f"Alert {alert} has come in. Find its cause, and the fastest way back to normal.",
        tools=[
            get_alert,
            of_service("check_logs", "Read the newest warnings in the log of a service.", warnings),
            of_service(
                "check_metrics", "Check the curves of a service over the last hour: errors, load, memory.", curves
            ),
            of_service(
                "check_deployment",
                "Look at the last deployment of a service: when it was, and what it changed.",
                deployment,
            ),
            diagnose,
        ],
        terminal_tool="diagnose",
        required_steps=["get_alert", "check_metrics"],
        right=every(
            thorough,
            wrote("diagnose", "diagnosis", ((library, "v4.0.0", "4.0.0"), field)),
            wrote("diagnose", "action", ((*_BACK, "v3.8.1", "3.8.1"),)),
        ),
    )


@twins("a question that no tool answers is declined", ideal_calls=1, tags={"model_quality"})
def relevance_detection(seed: int, *, stateful: bool) -> World:
    draw = Draw(seed)
    root, other = draw.randrange(11, 60), draw.randrange(3, 40)
    product, city = draw.choice(PRODUCTS), draw.choice(CITIES)
    question = draw.choice(
        (
            f"What is the square root of {root * root}?",
            f"What is {root} times {other}?",
            f"Write a slogan for the {product}.",
            f"Which rhymes are there for {city}?",
            f"How do I repair the zip of a {product.split()[0]} bag?",
            f"Who was the mayor of {city} in {1900 + root}?",
        )
    )

    forecast, free = {"city": "{city}", "forecast": "dry, 18 degrees"}, {"city": "{city}", "free": "Hotel Central"}

    @read
    def convert_currency(amount: float, currency: str) -> dict[str, float]:
        """Convert an amount of a currency to euros."""
        return {currency: amount, "euros": round(amount * 0.9, 2)}

    book_flight = action(
        "book_flight",
        "Book a flight.",
        "Booked: {origin} to {destination}, {date}.",
        origin=str,
        destination=str,
        date=str,
    )
    why = (str, "Why not, in a sentence.")

    def right(trajectory: Trajectory) -> str:
        problem = "" if len(written(trajectory, "decline", "reason").split()) >= 3 else "no reason was given"
        travel = unused("get_forecast", "check_hotel", "convert_currency", "book_flight")
        return first_of(problem, travel(trajectory.calls) if stateful else "")

    return world(
        "relevance_detection",
        question,
        tools=[
            fixed("get_forecast", "Get the weather forecast of a city.", forecast, city=str),
            fixed("check_hotel", "Check which hotels of a city have rooms.", free, city=str),
            convert_currency,
            book_flight,
            action("decline", "Say that no tool can do what was asked.", "{reason}", reason=why),
        ],
        terminal_tool="decline",
        limits=Limits(max_iterations=5),
        right=right,
        harm=unused("book_flight"),
    )


class _Records(Struct, frozen=True):
    fetched: int
    newest: str


@twins(
    "the format that an argument must have is only told by the error",
    ideal_calls=3,
    tags={"plumbing", "recovery"},
    not_counted=frozenset({"no_recovery", "bare"}),  # the error cannot be known in advance
)
def error_recovery(seed: int, *, stateful: bool) -> World:
    draw = Draw(seed)
    counts, names = draw.sample(range(12, 99), 3), draw.sample(PRODUCTS, 3)
    newest = {f"{count:04}": _Records(count, name) for count, name in zip(counts, names, strict=True)}

    @read
    def fetch(count: str) -> _Records:
        """Fetch records, the newest first.

        Args:
            count: How many records.
        """
        if len(count) != 4 or not count.isdecimal():
            raise TypeError(f"count must be four digits, zero-padded, such as '0007'; got {count!r}")
        return found(newest, count, "batch of size") if stateful else newest[f"{counts[0]:04}"]

    return world(
        "error_recovery",
        f"Fetch {counts[0]} records and summarize: how many records there are, and which one is the newest.",
        tools=[fetch, action("summarize", "Give the user the summary.", "{content}", content=str)],
        terminal_tool="summarize",
        required_steps=["fetch"],
        right=wrote("summarize", "content", (counts[0], names[0]), names[1:]),
    )


LOOKING_UP = (
    *basic_2step,
    *sequential_3step,
    *error_recovery,
    *tool_selection,
    *argument_fidelity,
    *sequential_reasoning,
    *conditional_routing,
    *relevance_detection,
)
