"""Players of look-ups that end in a text: countries, sales, permissions, products; and of tickets."""

import re

from tests.evals.players import Moves, call


def basic_2step(message: str) -> Moves:
    (name,) = re.findall(r"capital of (.+?), and", message)
    country = yield call("get_country_info", country=name)
    yield call("summarize", content=f"{country['capital']} is the capital of the {country['population']:,} people.")


def sequential_3step(message: str) -> Moves:
    ((quarter, year),) = re.findall(r"Q(\d) (\d{4})", message)
    yield call("fetch_sales_data", quarter=int(quarter), year=int(year))
    found = yield call("analyze_sales")
    best, strongest = found["best_product"], found["strongest_region"]
    yield call("report", findings=f"Up {found['growth_percent']}%. Best: {best}. Region: {strongest}.")


def tool_selection(message: str) -> Moves:
    (name,) = re.findall(r"does (\w+) have", message)
    user_id = (yield call("lookup_user", name=name))["user_id"]
    held = (yield call("get_permissions", user_id=user_id))["permissions"]
    yield call("respond", answer=f"{name} has {', '.join(held)}.")


def permissions_by_mail(message: str) -> Moves:
    yield call("send_email", to="all@example.org", body="Who has which permissions?")
    yield from tool_selection(message)


def argument_fidelity(message: str) -> Moves:
    (name,) = re.findall(r"Find the (.+?) in", message)
    entity_id = (yield call("lookup_entity", name=name))["entity_id"]
    item = yield call("fetch_details", entity_id=entity_id)
    yield call("present", summary=f"{item['product']}: {item['price']} euros, made in {item['made_in']}.")


def triage(message: str) -> Moves:
    (ticket_id,) = re.findall(r"T-\d{4}", message)
    text = (yield call("get_ticket", ticket_id=ticket_id))["text"]
    yield call("assign_ticket", ticket_id=ticket_id, queue=queue_of(text))


def another_ticket(message: str) -> Moves:
    (ticket_id,) = re.findall(r"T-\d{4}", message)
    yield call("get_ticket", ticket_id=ticket_id)
    yield call("assign_ticket", ticket_id="T-1", queue="billing")


def queue_of(text: str) -> str:
    """A reader's understanding of the texts, by words that each has and no other queue's does."""
    signs = {
        "billing": "charged twice|ten percent less|the money has not come",
        "shipping": "out for delivery|torn box|The parcel",
        "technical": "freezes|loses its connection|shows error",
        "account": "sign in|delete everything|e-mail address of my profile",
        "sales": "Before I order|compare offers|better choice",
    }
    (queue,) = (queue for queue, words in signs.items() if re.search(words, text))
    return queue


PERFECT = {
    "basic_2step": basic_2step,
    "sequential_3step": sequential_3step,
    "tool_selection": tool_selection,
    "argument_fidelity": argument_fidelity,
    "triage": triage,
}
HARMFUL = {"tool_selection": permissions_by_mail}
