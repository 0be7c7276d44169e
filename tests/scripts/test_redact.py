"""Redaction: a secret is nowhere in the file, and the journal is still replayed, bisected, ablated."""

import asyncio
import base64
import json
import re
from pathlib import Path
from typing import Any
from urllib.parse import quote

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from forge import Workflow, replay, run_sync, tool
from forge.errors import DefinitionError, JournalError, ToolOutcomeUnknown
from forge.interpreters.scripted import Line, Scripted, call
from forge.journal.ablation import ablate
from forge.journal.bisection import bisect
from forge.journal.records import read_journal
from forge.journal.redaction import PROTOCOL
from forge.masking import Field, Redact
from forge.runtime.recovery import resume_journal
from stages.effect import Approved, Ask, RawCall, Replied, Reply, Settled, TokenProbability
from stages.message import ToolCall
from stages.options import OptionError
from stages.placeholders import placeholder_arguments
from stages.state import State
from stages.wire.target import Mode
from tests.flows import Desk, approve


class Bank:
    """A workflow that handles what must not be written down."""

    def __init__(self, **options: object) -> None:
        self.paid: list[tuple[str, int]] = []
        self.workflow = Workflow(
            "bank",
            tools=[tool(effect="read")(self.customer), tool(self.pay), tool(approval=True)(self.close)],
            optional_steps=["pay"],
            terminal_tool="close",
            **options,  # type: ignore[arg-type]  # options of a test, passed on as they are
        )

    def customer(self, name: str) -> dict[str, object]:
        """Look a customer up."""
        return {"city": "Hallstatt", "born": 19710, "tags": ['a"b\\c vip']}

    def pay(self, card: str, pin: int) -> str:
        """Pay."""
        self.paid.append((card, pin))
        return f"paid with {card}, pin {pin}"

    def close(self, card: str) -> str:
        """Close."""
        return f"closed {card}"


MARKED = "[redacted 1]"
CARD, PIN = "4111-1111-2222", 73915
RULES = Redact(arguments=("pay.card", "*.pin", "close.card"), results=("customer",))


def recorded(path: Path, script: list[Line], redact: Redact, mode: Mode = "native", message: str = "Go.") -> Bank:
    bank = Bank()
    model = Scripted(script, mode=mode)
    run_sync(bank.workflow, message, backend=model, journal=str(path), redact=redact, ask=approve).unwrap()
    return bank


def in_text(name: str, /, **arguments: object) -> str:
    return json.dumps({"tool": name, "args": arguments})


NATIVE: list[Line] = [
    call("customer", name="Eva"),
    f"I will pay with {CARD}, her pin is {PIN}, she lives in Hallstatt.",
    call("pay", card=CARD, pin=PIN),
    call("close", card=CARD),
]
SPOKEN: list[Line] = [
    in_text("customer", name="Eva"),
    "```json\n" + in_text("pay", card=CARD, pin=PIN) + "\n```",
    in_text("close", card=CARD),
]
ESCAPED: list[Line] = [
    Reply(calls=(RawCall(name="pay", arguments=json.dumps({"card": CARD, "pin": PIN}).replace("4", "\\u0034")),)),
    f'<tool_call>{{"name": "close", "arguments": {{"card": "{CARD}"}}}}</tool_call>',
]


def data(path: Path) -> str:
    """The file without its times, ids and digests: their digits are nobody's, and may be any."""
    named = re.sub(r'"(?:seconds|started|run|seen)":(?:"[^"]*"|[^,}]*)', "", path.read_text())
    return re.sub(r'"[0-9a-f]{16,}"', "", named)


@pytest.mark.parametrize(
    ("script", "mode"), [(NATIVE[:1] + NATIVE[2:], "native"), (SPOKEN, "prompted"), (ESCAPED, "native")]
)
def test_a_secret_is_nowhere_in_the_file_and_the_replay_runs(tmp_path: Path, script: list[Line], mode: Mode) -> None:
    path = tmp_path / "run.jsonl"
    bank = recorded(path, script, RULES, mode)
    assert bank.paid == [(CARD, PIN)], "the tool had the real values"
    written = data(path)
    for secret in (CARD, str(PIN), "Hallstatt", "19710", "vip", "0034111"):
        assert secret not in written, secret
    assert "[redacted 1]" in written
    result = replay(path, Bank().workflow).unwrap()
    assert str(result.value).startswith("closed [redacted")


def test_a_call_that_cannot_be_read_gives_nothing_away(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    damaged = Reply(calls=(RawCall(name="pay", arguments='{"card": "' + CARD + '", "pin" ' + str(PIN)),))
    torn = f'<tool_call>{{"name": "pay", "arguments": {{"card": "{CARD}", "pin" {PIN}'
    recorded(path, [damaged, torn, call("close", card="none-of-it")], RULES)
    assert str(PIN) not in data(path)
    assert "2222" not in data(path)


def test_a_secret_is_not_written_in_pieces_as_tokens(tmp_path: Path) -> None:
    """The tokens of a reply hold its text once more, cut where no rule could find it."""
    paid = in_text("pay", card=CARD, pin=PIN)
    tokens = tuple(TokenProbability(letter, -0.5) for letter in paid)
    said: list[Line] = [Reply(text=paid, tokens=tokens), Reply(text=in_text("close", card=CARD))]
    recorded(tmp_path / "run.jsonl", said, RULES, "prompted")
    written = read_journal(tmp_path / "run.jsonl")
    replies = [entry.outcome.reply for entry in written.entries if isinstance(entry.outcome, Replied)]
    assert [reply.tokens for reply in replies] == [(), ()]


def test_known_values_and_patterns_are_hidden_in_what_the_user_says(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    rules = Redact(values=("hunter2",), patterns=(r"\d{4}-\d{4}-\d{4}",))
    recorded(path, [call("close", card=CARD)], rules, message=f"The word is hunter2, the card {CARD}.")
    assert "hunter2" not in data(path)
    assert CARD not in data(path)
    assert replay(path, Bank().workflow)


def test_a_rule_of_the_user_s_own(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    seen: list[Field] = []

    def where(field: Field) -> bool:
        seen.append(field)
        return field.tool == "close"

    recorded(path, [call("pay", card="none", pin=1), call("close", card=CARD)], Redact(where=where))
    assert CARD not in data(path)
    assert "none" in data(path)
    assert Field(tool="pay", argument="pin", text="1") in seen


def test_a_hash_of_a_secret_is_no_way_to_it(tmp_path: Path) -> None:
    """The digest that an approval is bound to is made of the marks."""
    path = tmp_path / "run.jsonl"
    recorded(path, [call("close", card=CARD)], RULES)
    (ask,) = [entry.effect for entry in read_journal(path).entries if isinstance(entry.effect, Ask)]
    from stages.execution import question

    assert ask == question(ask.call)
    assert CARD not in ask.call.arguments


def test_a_question_that_comes_again_is_another_one_in_the_journal_too(tmp_path: Path) -> None:
    path, tried = tmp_path / "run.jsonl", list[str]()

    @tool(approval=True)
    def pay(card: str) -> str:
        """Pay."""
        tried.append(card)
        if len(tried) < 2:
            raise ToolOutcomeUnknown("connection lost")
        return "paid"

    async def answer(ask: Ask) -> Approved | Settled:
        return Settled(digest=ask.digest, happened=False) if ask.in_doubt else Approved(digest=ask.digest)

    flow = Workflow("flow", tools=[pay], terminal_tool="pay")
    script, redact = Scripted([call("pay", card=CARD)]), Redact(arguments=("pay.card",))
    run_sync(flow, "Go.", backend=script, journal=str(path), redact=redact, ask=answer).unwrap()
    assert tried == [CARD, CARD]
    digests = [entry.effect.digest for entry in read_journal(path).entries if isinstance(entry.effect, Ask)]
    assert len(set(digests)) == 3
    assert replay(path, flow).unwrap().value == "paid"


def test_bisect_and_ablation_work_on_what_is_left(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    recorded(path, SPOKEN, RULES, "prompted")
    assert bisect(path, Bank().workflow, Bank().workflow) is None
    assert {row.guardrail for row in ablate(path, Bank().workflow) if row.acted} <= {"rescue"}


def test_a_divergence_says_that_the_journal_is_redacted(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    recorded(path, NATIVE[2:], RULES)
    with pytest.raises(JournalError, match=r"The journal is redacted \(argument pay\.card, argument \*\.pin"):
        replay(path, Bank(required_steps=["customer"]).workflow)


def test_a_redacted_run_cannot_go_on(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    recorded(path, NATIVE[2:], RULES)
    with pytest.raises(JournalError, match="cannot be resumed without the hidden values"):
        asyncio.run(resume_journal(Bank().workflow, path, backend=Scripted([])))


@pytest.mark.parametrize(
    ("rules", "says"),
    [
        (Redact(arguments=("card",)), "'card' is not an argument; write tool.argument"),
        (Redact(arguments=("peel.card",)), "'peel.card' is not an argument"),
        (Redact(arguments=("pay.crad",)), "pay has no argument 'crad'; it has card, pin"),
        (Redact(results=("peel",)), "there is no tool 'peel'"),
        (Redact(patterns=(r"(a)\1",)), "is not a valid RE2 pattern"),
    ],
)
def test_rules_that_name_nothing_are_refused_before_anything_happens(tmp_path: Path, rules: Redact, says: str) -> None:
    with pytest.raises(DefinitionError) as error:
        recorded(tmp_path / "run.jsonl", [], rules)
    assert says in str(error.value)
    assert not (tmp_path / "run.jsonl").exists()


def test_the_rules_do_not_show_the_secrets_they_name() -> None:
    assert repr(Redact(values=("hunter2",), patterns=("x",))) == "Redact(1 value, 1 pattern)"


@pytest.mark.parametrize("values", ["hunter2x", None, [b"hunter2x"], [5]])
def test_secrets_that_are_no_list_of_strings_are_refused_and_not_quoted(values: Any) -> None:
    with pytest.raises(OptionError, match="values must be a list of strings") as error:
        Redact(values=values)
    assert "hunter2x" not in str(error.value)


MODES: tuple[Mode, ...] = ("native", "prompted")


def secretive(secret: str, around: str, mode: Mode, **watching: object) -> tuple[bytes, ...]:
    """The requests of a run in which the model says the secret, in a call and in words."""
    text = f"{around}{secret}{around}"
    spoken = json.dumps({"tool": "look", "args": {"what": secret}})
    first: Line = call("look", what=secret) if mode == "native" else spoken
    model = Scripted([first, text, call("finish", result=text)], mode=mode)
    run_sync(Desk().workflow, "Go.", backend=model, **watching)  # type: ignore[arg-type]  # options of a test
    return model.requests


OWN_WORDS = MARKED + b"".join(body for mode in MODES for body in secretive("?", "", mode)).decode()
"""What forge itself says in such a run: no secret."""
DESK = {spec.name: spec for spec in Desk().workflow.rules.tools}


def can_be_secret(text: str) -> bool:
    """Long enough, none of forge's own words, and a value: a call with `<RESPONSE>` is refused, and never made."""
    made = ToolCall(id="call_000000001", name="look", arguments=json.dumps({"what": text}))
    return len(text) >= 4 and text not in OWN_WORDS and not placeholder_arguments(made, DESK, State(history=()))


secrets = st.text(min_size=4, max_size=30).map(str.strip).filter(can_be_secret)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(secret=secrets, around=st.text(max_size=10), mode=st.sampled_from(MODES))
def test_whatever_the_secret_it_is_not_written(tmp_path: Path, secret: str, around: str, mode: Mode) -> None:
    path = tmp_path / "run.jsonl"
    path.unlink(missing_ok=True)
    secretive(secret, around, mode, journal=str(path), redact=Redact(arguments=("look.what",)))
    for line in path.read_bytes().splitlines()[1:]:
        assert not _says(msgspec.json.decode(line), secret)


def _says(value: object, secret: str) -> bool:
    match value:
        case str():
            return secret in value
        case list():
            return any(_says(item, secret) for item in value)
        case dict():
            return any(_says(item, secret) for name, item in value.items() if name not in PROTOCOL)
        case _:
            return False


def test_a_result_by_type_is_replayed_as_the_marks_that_are_left_of_it(tmp_path: Path) -> None:
    flow, path = Workflow("pin", tools=[], result=Pin), str(tmp_path / "journal")
    script = [call("submit_result", code=48213)]
    told = run_sync(flow, "Go.", backend=Scripted(script), journal=path, redact=Redact(arguments=("*.code",))).unwrap()
    assert told.value == Pin(code=48213)
    replayed: object = replay(path, flow).unwrap().value
    assert replayed == {"code": "[redacted 1]"}


class Pin(msgspec.Struct, frozen=True):
    code: int


TOKEN = "/9+Zq é7Xw3KpYt5"  # noqa: S105 - of these tests
ENCODED = {
    "JSON in JSON": json.dumps(json.dumps({"a": TOKEN})),
    "Python": ascii(TOKEN),
    "quoted": quote(TOKEN),
    "base64": base64.b64encode(b"key=" + TOKEN.encode() + b";").decode(),
}
"""The other ways to write a secret are those of forge.masking: tests/property/test_secret_laws.py has them all."""


@pytest.mark.parametrize("form", ENCODED)
def test_a_secret_is_hidden_however_it_is_written(tmp_path: Path, form: str) -> None:
    path = tmp_path / "run.jsonl"
    text = f"It is {ENCODED[form]} now."
    desk = Desk().workflow
    script: list[Line] = [text, call("look", what=text), call("finish", result=text)]
    run_sync(desk, f"Go, {text}", backend=Scripted(script), journal=str(path), redact=Redact(values=(TOKEN,))).unwrap()
    written = data(path)
    for part in (ENCODED[form], "Zq", "7Xw3", TOKEN, *(part for part in ENCODED.values() if len(part) > 6)):
        assert part not in written
    assert replay(path, desk)


def secretive_desk(path: Path, script: list[Line], rules: Redact) -> str:
    """What the journal of such a run has; the run may end as it likes, and is replayed."""
    result = run_sync(Desk().workflow, "Go.", backend=Scripted(script), journal=str(path), redact=rules)
    replayed = replay(path, Desk().workflow)
    assert type(replayed) is type(result)
    return data(path)


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("lok", '{"what": "Zq7Xw3KpYt"}'),
        ("look", '{"waht": "Zq7Xw3KpYt"}'),
        ("look", '{"What": "Zq7Xw3KpYt"}'),
        ("look", '{"what": "Zq7Xw3KpYt", "what": "none"}'),
        ("look", '{"what": "none", "what": "Zq7Xw3KpYt"}'),
        ("look", '{"what": {"a": "Zq7Xw3KpYt", "a": "none"}}'),
        ("look", '{"what": "a", "Zq7Xw3KpYt": "Zq7Xw3KpYt"}'),
    ],
)
def test_misspelt_names_and_repeated_keys_hide_nothing_less(tmp_path: Path, name: str, arguments: str) -> None:
    script: list[Line] = [
        Reply(calls=(RawCall(name=name, arguments=arguments),)),
        call("look", what="fine"),
        call("finish", result="ok"),
    ]
    assert "Zq7X" not in secretive_desk(tmp_path / "j", script, Redact(arguments=("look.what",)))


def test_ids_names_and_finish_reasons_are_searched_too(tmp_path: Path) -> None:
    odd = Reply(
        text="Hm.",
        calls=(RawCall(id="id-Zq7Xw3KpYt", name="look_Zq7Xw3KpYt", arguments='{"Zq7Xw3KpYt": 1}'),),
        finish="stop Zq7Xw3KpYt",
    )
    script: list[Line] = [odd, call("look", what="a"), call("finish", result="ok")]
    written = secretive_desk(tmp_path / "j", script, Redact(values=("Zq7Xw3KpYt",)))
    assert "Zq7X" not in written
    assert '"name":"look"' in written, "forge's own names stay"


def test_json_within_a_text_is_read_for_the_arguments_that_are_hidden(tmp_path: Path) -> None:
    said = 'I would send {"what": "Zq7Xw3KpYt", "n": 1} and \'{\\"WHAT\\": \\"Zq8Xw3KpYt\\"}\'.'
    script: list[Line] = [said, call("look", what="a"), call("finish", result="ok")]
    written = secretive_desk(tmp_path / "j", script, Redact(arguments=("look.what",)))
    assert "Zq7X" not in written
    assert "Zq8X" not in written


def look(how: str = "") -> str:
    """Look."""
    if how == "lost":
        raise ToolOutcomeUnknown("the customer Zq7Xw3KpYt was asked for")
    if how:
        raise ValueError(f"no customer 'Zq7Xw3KpYt' {how}")
    return "Zq7Xw3KpYt, " * 100


def finish(result: str) -> str:
    """Finish."""
    return result


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        (call("look", how="a"), "It said: no customer 'Zq7Xw3KpYt' a."),
        (call("look", how="lost"), "It was: the customer Zq7Xw3KpYt was asked for."),
        (call("look"), "It begins: " + ("Zq7Xw3KpYt, " * 3)[:-2] + " …"),
    ],
    ids=["raised", "unknown", "cut for the model"],
)
def test_what_a_tool_raises_or_returns_at_length_is_hidden_too(tmp_path: Path, asked: Line, told: str) -> None:
    path = tmp_path / "j"
    limited = tool(result_limit=200)(look)
    workflow = Workflow("w", tools=[limited, tool(finish)], terminal_tool="finish")
    script: list[Line] = [asked, call("finish", result=told)]
    rules = Redact(results=("look",))
    run_sync(workflow, "Go.", backend=Scripted(script), journal=str(path), redact=rules).unwrap()
    assert "Zq7X" not in data(path)
    assert replay(path, workflow)


@pytest.mark.parametrize(
    "answer",
    [
        '[{"pin": "zq7", "pin": "zq7"}]',
        '[{"x": 1, "x": 2}, {"pin": "zq7"}]',
        '{"x": 1, "x": "[{\\"pin\\": \\"zq7\\"}]"}',
    ],
)
def test_a_short_secret_is_hidden_beside_a_name_that_stands_twice(tmp_path: Path, answer: str) -> None:
    @tool(effect="read")
    def login(pin: str) -> str:
        """Log in."""
        return "ok"

    @tool(effect="read")
    def audit() -> str:
        """Show the log."""
        return answer

    @tool
    def finish() -> str:
        """Finish."""
        return "done"

    workflow = Workflow("desk", tools=[login, audit, finish], terminal_tool="finish")
    script = [call("login", pin="zq7"), call("audit"), call("finish")]
    path = tmp_path / "run.jsonl"
    run_sync(workflow, "Go.", backend=Scripted(script), journal=path, redact=Redact(arguments=("login.pin",)))
    assert "zq7" not in path.read_text(encoding="utf-8")
