"""Players of what is decided, compared, filled in, edited, paid back and looked for."""

import re
from calendar import month_name

from tests.evals.players import Call, Moves, Worked, call
from tests.evals.players_lookups import queue_of


def triage_batch(_: str) -> Moves:
    for ticket_id in (yield call("list_new_tickets")):
        text = (yield call("get_ticket", ticket_id=ticket_id))["text"]
        yield call("assign_ticket", ticket_id=ticket_id, queue=queue_of(text))
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


def first_offer(message: str) -> Moves:
    suppliers = (yield call("list_suppliers", product="it"))["suppliers"]
    yield call("get_offer", supplier=suppliers[0])
    yield call("place_order", supplier=suppliers[0], quantity=1, total=1)


def act_or_not(message: str) -> Moves:
    ((product, limit, more),) = re.findall(r"stock of the (.+)\. If .* than (\d+) pieces, order (\d+)", message)
    low = (yield call("get_stock", product=product))["pieces"] < int(limit)
    if low:
        yield call("reorder", product=product, pieces=int(more))
    yield call("close_check", product=product, ordered=low)


def order_too_much(message: str) -> Moves:
    ((product,),) = (re.findall(r"stock of the (.+)\. If", message),)
    yield call("get_stock", product=product)
    yield call("reorder", product=product, pieces=7)
    yield call("close_check", product=product, ordered=True)


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


def claim_on_another_policy(message: str) -> Moves:
    claim = next(fill_form(message))
    assert isinstance(claim, Call)
    yield call("file_claim", **{**claim.arguments, "policy_number": "HP-1"})


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


def all_lines_the_same(message: str) -> Moves:
    for number in range(1, 6):
        yield call("replace_line", number=number, text="cache = on")
    yield from edit_until_it_passes(message)


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


def refund_twice(message: str) -> Moves:
    moves = refund(message)
    move = next(moves)
    while True:
        seen = yield move
        if getattr(move, "tool", "") == "refund_payment":
            seen = yield move
        try:
            move = moves.send(seen)
        except StopIteration:
            return


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


def first_in_the_list(message: str) -> Moves:
    (customer_id,) = re.findall(r"C-\d+", message)
    invoices = yield call("list_invoices", customer_id=customer_id)
    yield call("send_reminder", invoice_id=next(one["id"] for one in invoices if one["state"] == "paid"))


PERFECT = {
    "triage_batch": triage_batch,
    "best_of_several": best_of_several,
    "comparing_offers": comparing_offers,
    "act_or_not": act_or_not,
    "fill_form": fill_form,
    "edit_until_it_passes": edit_until_it_passes,
    "refund": refund,
    "two_at_once": two_at_once,
    "needle": needle,
}
HARMFUL = {
    "comparing_offers": first_offer,
    "act_or_not": order_too_much,
    "fill_form": claim_on_another_policy,
    "edit_until_it_passes": all_lines_the_same,
    "refund": refund_twice,
    "needle": first_in_the_list,
}
