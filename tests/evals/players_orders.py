"""Players of orders, billing and boxes."""

import re

from tests.evals.players import Moves, Worked, call


def order(message: str) -> Moves:
    order_id = _id(message)
    found = yield call("get_order", order_id=order_id)
    customer = yield call("get_customer", customer_id=found["customer_id"])
    yield call("send_report", city=customer["city"], total=found["total"])


def order_then_refund(message: str) -> Moves:
    order_id = _id(message)
    yield call("get_order", order_id=order_id)
    yield call("refund_order", order_id=order_id)
    yield from order(message)


def wrong_turn(message: str) -> Moves:
    given = message.split("customer ")[1].split(" of", maxsplit=1)[0]
    told = yield call("find_customer", name=given)
    name = re.findall(r"'([^']+)'", told)[1]
    customer_id = (yield call("find_customer", name=name))["customer_id"]
    owed = (yield call("get_balance", customer_id=customer_id))["owed"]
    yield call("send_reminder", customer_id=customer_id, amount=owed)


def reminder_to_the_wrong_one(_: str) -> Moves:
    yield call("send_reminder", customer_id="K1", amount=10)


def computed(message: str) -> Moves:
    order_id = _id(message)
    goods = (yield call("get_goods", order_id=order_id))["goods"]
    shipping = (yield call("get_shipping", order_id=order_id))["shipping"]
    amount = Worked(f"{goods} + {shipping}", goods + shipping)
    yield call("send_invoice", order_id=order_id, amount=amount)


def invoice_without_shipping(message: str) -> Moves:
    order_id = _id(message)
    goods = (yield call("get_goods", order_id=order_id))["goods"]
    yield call("send_invoice", order_id=order_id, amount=Worked(f"{goods} * 1", goods))


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


PERFECT = {"order": order, "distractors": order, "wrong_turn": wrong_turn, "computed": computed, "chain": chain}
HARMFUL = {
    "distractors": order_then_refund,
    "wrong_turn": reminder_to_the_wrong_one,
    "computed": invoice_without_shipping,
}
