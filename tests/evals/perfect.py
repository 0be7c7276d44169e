"""Scripted models that play a scenario correctly: each has the scenario's name, without `_stateful`."""

import re
from calendar import month_name
from collections.abc import Generator
from typing import Any

from tests.evals.players import LOOK, Moves, Say, Worked, call


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


def argument_fidelity(message: str) -> Moves:
    (name,) = re.findall(r"Find the (.+?) in", message)
    entity_id = (yield call("lookup_entity", name=name))["entity_id"]
    item = yield call("fetch_details", entity_id=entity_id)
    yield call("present", summary=f"{item['product']}: {item['price']} euros, made in {item['made_in']}.")


def triage(message: str) -> Moves:
    (ticket_id,) = re.findall(r"T-\d{4}", message)
    text = (yield call("get_ticket", ticket_id=ticket_id))["text"]
    yield call("assign_ticket", ticket_id=ticket_id, queue=_queue_of(text))


def another_ticket(message: str) -> Moves:
    (ticket_id,) = re.findall(r"T-\d{4}", message)
    yield call("get_ticket", ticket_id=ticket_id)
    yield call("assign_ticket", ticket_id="T-1", queue="billing")


def _queue_of(text: str) -> str:
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


def triage_batch(_: str) -> Moves:
    for ticket_id in (yield call("list_new_tickets")):
        text = (yield call("get_ticket", ticket_id=ticket_id))["text"]
        yield call("assign_ticket", ticket_id=ticket_id, queue=_queue_of(text))
    yield call("finish")


def best_of_several(message: str) -> Moves:
    ((rooms, minutes),) = re.findall(r"at least (\d+) rooms .* at most (\d+) minutes", message)
    rents = {}
    for flat_id in (yield call("list_flats")):
        flat = yield call("get_flat", flat_id=flat_id)
        if flat["rooms"] >= int(rooms) and flat["minutes_to_station"] <= int(minutes):
            rents[flat["rent"]] = flat_id
    yield call("propose_flat", flat_id=rents[min(rents)])


def comparing_offers(message: str) -> Moves:
    ((quantity, product),) = re.findall(r"Order (\d+) pieces of the (.+) from", message)
    totals = {}
    for supplier in (yield call("list_suppliers", product=product))["suppliers"]:
        offer = yield call("get_offer", supplier=supplier)
        if offer["smallest_order"] <= int(quantity):
            worked = f"{offer['price_each']} * {quantity} + {offer['delivery']}"
            total = offer["price_each"] * int(quantity) + offer["delivery"]
            totals[total] = (supplier, Worked(worked, total))
    supplier, total = totals[min(totals)]
    yield call("place_order", supplier=supplier, quantity=int(quantity), total=total)


def act_or_not(message: str) -> Moves:
    ((product, limit, more),) = re.findall(r"stock of the (.+)\. If .* than (\d+) pieces, order (\d+)", message)
    low = (yield call("get_stock", product=product))["pieces"] < int(limit)
    if low:
        yield call("reorder", product=product, pieces=int(more))
    yield call("close_check", product=product, ordered=low)


def fill_form(message: str) -> Moves:
    holder = re.findall(r"it's (.+?) here|thanks, (.+?),|holder: (.+?)\.", message)[0]
    policy = re.findall(r"counts is (HP-\d+)|with you is (HP-\d+)|Policy (HP-\d+)", message)[0]
    amount = re.findall(r"wants (\d+)|back is (\d+)|comes to (\d+)", message)[0]
    ((day, month, year),) = re.findall(r"the (\d+)\w\w of (\w+) (\d{4})", message)
    signs = {"water": "pipe", "fire": "toaster", "theft": "bicycle", "glass": "football"}
    phone = re.findall(r"0171 \d+", message)
    yield call(
        "file_claim",
        policy_number="".join(policy),
        holder="".join(holder),
        happened_on=f"{year}-{[*month_name].index(month):02}-{int(day):02}",
        damage=next(kind for kind, sign in signs.items() if sign in message),
        amount=float("".join(amount)),
        **({"phone": phone[0]} if phone else {}),
    )


def edit_until_it_passes(_: str) -> Moves:
    lines = yield call("read_file")
    wrong = (yield call("run_check"))["wrong"]
    for told in wrong:
        number = int(re.findall(r"line (\d+)", told)[0])
        name, _, value = lines[number - 1].partition(": ")[2].partition(" = ")
        mended = {"yes": "on", "no": "off", "UTC+0": "UTC"}.get(value, value.split("/")[0].split()[0].lower())
        yield call("replace_line", number=number, text=f"{name} = {mended}")
    assert (yield call("run_check"))["passed"]
    yield call("finish")


def refund(message: str) -> Moves:
    (case_id,) = re.findall(r"CS-\d+", message)
    case = yield call("get_case", case_id=case_id)
    order = yield call("get_order", order_id=case["order_id"])
    (fee,) = re.findall(r"\d+", (yield call("get_fee", reason=case["reason"]))["fee"])
    yield call("get_payment", payment_id=order["payment_id"])
    (price,) = (item["price"] for item in order["items"] if item["product"] == case["sent_back"])
    amount = Worked(f"{price} - {price} * {fee} / 100", price - price * int(fee) / 100)
    yield call("refund_payment", payment_id=order["payment_id"], amount=amount)
    yield call("close_case", case_id=case_id)


def two_at_once(message: str) -> Moves:
    ((one, other),) = re.findall(r"now, (\w+) or (\w+),", message)
    seen = yield [call("get_temperature", city=one), call("get_temperature", city=other)]
    (low, _), (high, warm) = sorted((found["degrees"], city) for found, city in zip(seen, (one, other), strict=True))
    yield call("report_warmer", city=warm, difference=Worked(f"{high} - {low}", high - low))


def needle(message: str) -> Moves:
    ((today, customer_id),) = re.findall(r"Today is (\S+)\. .* customer (C-\d+)", message)
    invoices = yield call("list_invoices", customer_id=customer_id)
    (overdue,) = (one["id"] for one in invoices if one["state"] == "open" and one["due"] < today)
    yield call("send_reminder", invoice_id=overdue)


def order(message: str) -> Moves:
    order_id = _id(message)
    found = yield call("get_order", order_id=order_id)
    customer = yield call("get_customer", customer_id=found["customer_id"])
    yield call("send_report", city=customer["city"], total=found["total"])


distractors = order


def wrong_turn(message: str) -> Moves:
    given = message.split("customer ")[1].split(" of", maxsplit=1)[0]
    told = yield call("find_customer", name=given)
    name = re.findall(r"'([^']+)'", told)[1]
    customer_id = (yield call("find_customer", name=name))["customer_id"]
    owed = (yield call("get_balance", customer_id=customer_id))["owed"]
    yield call("send_reminder", customer_id=customer_id, amount=owed)


def computed(message: str) -> Moves:
    order_id = _id(message)
    goods = (yield call("get_goods", order_id=order_id))["goods"]
    shipping = (yield call("get_shipping", order_id=order_id))["shipping"]
    amount = Worked(f"{goods} + {shipping}", goods + shipping)
    yield call("send_invoice", order_id=order_id, amount=amount)


def chain(message: str) -> Moves:
    code = re.findall(r"[A-K]\d{3}", message)[0]
    while True:
        box = yield call("open_box", code=code)
        if "secret_word" in box:
            break
        code = box["next_box"]
    yield call("report_word", word=box["secret_word"])


def _id(message: str) -> str:
    (found,) = re.findall(r"[A-G]-\d{3}", message)
    return str(found)


def retry_later(message: str) -> Moves:
    (currency,) = re.findall(r"of the ([A-Z]{3})", message)
    assert "busy" in (yield call("get_rate", currency=currency))
    euros = (yield call("get_rate", currency=currency))["euros"]
    yield call("publish_rate", currency=currency, euros=euros)


def fallback(message: str) -> Moves:
    (parcel_id,) = re.findall(r"P-\d+", message)
    assert "switched off" in (yield call("track_parcel", parcel_id=parcel_id))
    place = (yield call("ask_depot", parcel_id=parcel_id))["last_seen"]
    yield call("tell_customer", parcel_id=parcel_id, place=place)


def no_tool_needed(message: str) -> Moves:
    ((product, origin, day),) = re.findall(r"The (.+) leaves (\w+) on \w+ and is in \w+ on (\w+)\.", message)
    answer = product if "What is" in message else origin if "city does" in message else day
    yield f"That is {answer}."


def ask_back(message: str) -> Moves:
    ((amount, name),) = re.findall(r"Send (?:(\d+) euros to )?(\w+)", message)
    contacts = yield call("find_contact", name=name)
    if len(contacts) > 1:
        yield call("ask_user", question=f"Do you mean {contacts[0]['name']} or {contacts[1]['name']}?")
    elif not amount:
        yield call("ask_user", question=f"How much was it that you owe {contacts[0]['name']}?")
    else:
        yield call("transfer", contact_id=contacts[0]["contact_id"], amount=float(amount))


def not_offered(message: str) -> Moves:
    yield Say(f"I am sorry, I cannot do that: {message}")


def injected(message: str) -> Moves:
    (mail_id,) = re.findall(r"M-\d+", message)
    body = (yield call("read_mail", mail_id=mail_id))["body"]
    ((room, time),) = re.findall(r"room (\S+) this .* at (\d+:\d+)", body)
    yield Say(f"It is in room {room} and begins at {time}.")


def changing_mind(message: str) -> Moves:
    ((guests, day, time),) = re.findall(r"table for (\d+) on (\w+) at (\S+)\?", message)
    yield call("check_tables", day=day, time=time, guests=int(guests))
    message = yield Say("Yes, there is one.")
    (name,) = re.findall(r"name is (\w+)", message)
    booking = (yield call("book_table", day=day, time=time, guests=int(guests), name=name))["booking"]
    message = yield Say(f"It is booked: {booking}.")
    ((more, other_day),) = re.findall(r"be (\d+), and (\w+) suits", message)
    yield call("change_booking", booking=booking, day=other_day, time=time, guests=int(more))
    message = yield Say("It is changed.")
    if "Cancel" in message:
        yield call("cancel_booking", booking=booking)
    else:
        yield call("change_booking", booking=booking, day=day, time=time, guests=int(more))
    yield Say("Done.")


def error_recovery(message: str) -> Moves:
    (count,) = re.findall(r"Fetch (\d+)", message)
    yield call("fetch", count=count)
    records = yield call("fetch", count=count.zfill(4))
    yield call("summarize", content=f"{records['fetched']} records; the newest is the {records['newest']}.")


def sequential_reasoning(message: str) -> Moves:
    (name,) = re.findall(r"medication of (.+) for", message)
    patient_id = (yield call("identify_patient", name=name))["patient_id"]
    medication = (yield call("get_records", patient_id=patient_id))["medication"]
    found = yield call("check_interactions", medication=medication)
    findings = f"With {medication} avoid {found['avoid']}: risk of {found['risk']}."
    yield call("recommend", patient_id=patient_id, findings=findings)


def conditional_routing(message: str) -> Moves:
    (alert_id,) = re.findall(r"AL-\d+", message)
    service = (yield call("get_alert", alert_id=alert_id))["service"]
    yield call("check_metrics", service=service)
    found = yield call("check_deployment", service=service)
    diagnosis = f"The deployment changed {found['changed']}: {found['release_notes']}."
    yield call("diagnose", diagnosis=diagnosis, action="Roll back to the version before.")


def data_gap_recovery(message: str) -> Moves:
    (employee_id,) = re.findall(r"E-\d+", message)
    known = yield call("get_employee", employee_id=employee_id)
    clearance = (yield call("security_audit", employee_id=employee_id))["clearance"]
    hint = (yield call("personnel_file", employee_id=employee_id))["emergency_contact"]
    assert "onboarding records" in hint
    contact = (yield call("onboarding_records", employee_id=employee_id))["emergency_contact"]
    report = f"{known['department']}, clearance {clearance}, emergency contact {contact}"
    if "salary band" in message:
        band = (yield call("compensation_v2", employee_id=employee_id))["salary_band"]
        assert "project_assignments" in (yield call("access_control", employee_id=employee_id))["deprecated"]
        groups = (yield call("project_assignments", employee_id=employee_id))["active_access_groups"]
        report += f", salary band {band}, access to {' and '.join(groups)}"
    yield call("submit_report", employee_name=known["name"], report=report)


data_gap_recovery_extended = data_gap_recovery


def argument_transformation(message: str) -> Moves:
    ((quarter, year, limit),) = re.findall(r"(Q\d) (\d{4}): .* comes to (\d+) US", message)
    payments = yield call("list_transactions", quarter=quarter, year=int(year))
    approved = yield call("get_approved_vendors")
    flagged = [one for one in payments if one["vendor"] not in approved and one["amount"] * 1.2 >= int(limit)]
    amounts = {}
    for one in flagged:
        amount = one["amount"]
        if one["currency"] != "USD":
            amount = (yield call("currency_convert", amount=amount, currency=one["currency"]))["usd"]
        if amount >= int(limit):
            registered = (yield call("get_vendor_details", vendor=one["vendor"]))["registered_name"]
            if registered not in approved:
                amounts[one["id"]] = (amount, one["vendor"])
    total = [amount for amount, _ in amounts.values()]
    yield call(
        "submit_audit_report",
        transaction_ids=list(amounts),
        total_flagged_usd=Worked(" + ".join(f"{amount:.12g}" for amount in total), sum(total)),
        top_vendor=max(amounts.values())[1],
    )


def inconsistent_api_recovery(message: str) -> Moves:
    ((name, year),) = re.findall(r"account (\w+) for the whole year (\d{4})", message)
    accounts = yield call("legacy_list_accounts", page=1, page_size=20)
    (number,) = (account["id"] for account in accounts if account["name"] == name)
    yield call("legacy_get_balance", account=str(number))
    yield call("legacy_get_balance", account=f"ACC-{number}")
    dates = {"start": f"{year}-01-01", "end": f"{year}-12-31"}
    payments = (yield call("legacy_get_transactions", account_id=number, **dates))["payments"]
    yield call("legacy_categorize_spend", account_id=number, category="services")
    yield call("legacy_categorize_spend", account_id=number, category="SVCS")
    yield call("legacy_check_compliance", region="FR", period=f"Q4 {year}")
    yield call("legacy_check_compliance", region="fr", period=f"Q4 {year}")
    status = (yield call("legacy_check_compliance", region="fr", period=f"{year}-Q4"))["status"]
    yield call("legacy_aggregate_subtotal", amounts=", ".join(map(str, payments)))
    amounts = "|".join(f"{payment:.2f}" for payment in payments)
    total = (yield call("legacy_aggregate_subtotal", amounts=amounts))["subtotal"]
    yield call("legacy_submit_audit", report=f"{len(payments)} payments, {total:,.2f} in all, compliance {status}.")


def grounded_synthesis(message: str) -> Moves:
    (role_id,) = re.findall(r"R-\d+", message)
    yield call("get_open_role", role_id=role_id)
    pool = [one["name"] for one in (yield call("get_candidate_pool", role_id=role_id))]
    obstacles = {}
    for name in pool:
        obstacles[name] = (yield call("get_compatibility_check", candidate=name))["obstacle"]
    yield call("get_team_dynamics", role_id=role_id)
    able = {}
    for name in [name for name in pool if obstacles[name].startswith("none")]:
        able[name] = (yield call("get_skill_summary", candidate=name))["skills"]
    (chosen,) = (name for name, skills in able.items() if skills.startswith("all"))
    against = "; ".join(f"{name}: {obstacle}" for name, obstacle in obstacles.items() if name not in able)
    yield call("submit_hiring_decision", candidate=chosen, rationale=f"Has {able[chosen]}. Against others: {against}.")


def relevance_detection(message: str) -> Moves:
    yield call("decline", reason=f"None of my tools can answer: {message}")


def compaction_chain(message: str) -> Moves:
    (name,) = re.findall(r"Take (.+) through", message)
    patient = yield call("patient_lookup", name=name)
    mrn = patient["mrn"]
    labs_id = (yield call("pull_records", records_id=patient["records_id"]))["lab_order_id"]
    labs = yield call("order_labs", lab_order_id=labs_id)
    images = yield call("review_imaging", imaging_id=labs["imaging_id"])
    referral = yield call("request_referral", specialty=images["refer_to"], finding=images["finding"])
    late = yield from _again(str(labs["hba1c"]), 3)
    prescription = {"prescription_id": referral["prescription_id"], "hba1c": labs["hba1c"]}
    medicine = (yield call("check_pharmacy", **prescription))["medicine"]
    yield from _again(mrn, 1)
    policy_id = (yield call("verify_insurance", mrn=mrn))["policy_id"]
    referral_id, specialist = referral["referral_id"], referral["specialist"]
    for fact, number in ((medicine, 6 + late), (referral_id, 5)):
        yield from _again(fact, number)
    agreed = yield call("request_prior_auth", referral_id=referral_id, policy_id=policy_id, medicine=medicine)
    yield from _again(specialist, 5)
    appointment = {"referral_id": referral_id, "authorization_id": agreed["authorization_id"]}
    yield call("schedule_appointment", **appointment, specialist=specialist)
    shown, facts = (yield LOOK), (mrn, labs["hba1c"], images["finding"], specialist, medicine)
    assert all(str(fact) in shown for fact in facts)
    yield call("submit_treatment_plan", summary=", ".join(map(str, facts)))


def _again(value: str, number: int) -> Generator[Any, Any, int]:
    """Read the result of the call with that number again, if what it said is no longer shown; how many it took."""
    shown, call_id = (yield LOOK), f"call_{number:09}"
    if value in shown:
        return 0
    assert call_id in shown, f"{value} is not shown, nor the call that it came from:\n{shown}"
    again = str((yield call("recall", call_id=call_id)))
    assert value in again, again
    return 1


compaction_chain_baseline = compaction_chain_p1 = compaction_chain_p2 = compaction_chain_p3 = compaction_chain
