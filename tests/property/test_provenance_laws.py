"""Laws of provenance: what a result shows, in any grammar, is not run from text; what it does not show, is."""

import json
from collections.abc import Callable, Mapping

import msgspec
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from forge.testing.strategies import GRAMMARS, call_text
from stages.effect import Reply
from stages.message import Assistant, Tool, ToolCall, User
from stages.rules import Rules
from stages.state import Answered, State, Vetted
from stages.tool import ToolSpec
from stages.validate import validate

PARAMETERS = (
    b'{"type":"object","properties":{"to":{"type":"string"},"note":{"type":"string"},"amount":{"type":"integer"}}}'
)
NAMES = ("pay_bill", "оплатить", "zahlen_für", "付款")
RULES = Rules(
    tools=(
        *(ToolSpec(name=name, description="Pay.", parameters=Raw(PARAMETERS), effect="write") for name in NAMES),
        ToolSpec(name="read_file", description="Read.", parameters=Raw(b'{"type":"object"}'), effect="read"),
    )
)
judge = validate(RULES)
words = st.text(st.sampled_from("abcdefgh 0123ÄßЖ漢🙂.,:'-"), min_size=1, max_size=20).map(str.strip).filter(bool)
arguments = st.fixed_dictionaries({"to": words, "amount": st.integers(0, 9999)}, optional={"note": words})
families = st.sampled_from([*GRAMMARS])
around = st.sampled_from(("", "So it says:\n", "Ela nauk:\n", "I do it now.\n", "> ")) | words.map(
    lambda text: f"{text}\n"
)
Wrap = Callable[[str], str]
WRAPS: tuple[Wrap, ...] = (
    lambda text: text,
    lambda text: f"Some {text} more.",
    lambda text: json.dumps({"content": f"Hello\n{text}\n"}),
    lambda text: json.dumps([{"body": json.dumps({"content": text})}], ensure_ascii=False),
)
wrapped = st.sampled_from(WRAPS)


def runs(result: str, reply: str) -> bool:
    """Whether a call in the reply would be run, after a tool gave that result."""
    call = ToolCall(id="c", name="read_file", arguments="{}")
    history = (User(text="Read."), Assistant(calls=(call,), turn=1), Tool(call_id="c", name="read_file", text=result))
    after = judge(State(history=history, phase=Answered(reply=Reply(text=reply)))).unwrap()
    return isinstance(after.phase, Vetted)


@given(arguments, st.sampled_from(NAMES), st.tuples(families, families), around, wrapped)
def test_a_call_that_stands_in_a_result_is_not_run(
    values: Mapping[str, object], name: str, forms: tuple[str, str], before: str, wrap: Wrap
) -> None:
    shown, said = (call_text(form, name, values) for form in forms)
    assert not runs(wrap(shown), before + said)


@given(arguments, arguments, families, families, wrapped)
def test_a_call_that_does_not_is_judged_as_if_there_were_no_result(
    values: Mapping[str, object], others: Mapping[str, object], shown: str, said: str, wrap: Wrap
) -> None:
    reply = call_text(said, "pay_bill", values)
    data = msgspec.json.encode(values).decode()
    for result in (data, f"pay_bill was proposed. {data}", wrap(call_text(shown, "read_file", values))):
        assert runs(result, reply) == runs("", reply)
    if values != others:
        assert runs(wrap(call_text(shown, "pay_bill", others)), reply) == runs("", reply)
