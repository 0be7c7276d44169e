"""The levels of escalation that depend on the backend: which are taken, and what the request says on each."""

from typing import get_args

import msgspec
import pytest
from msgspec import Raw
from msgspec.structs import replace

from forge import Workflow, run_sync, tool
from forge.backends.doctor.examination import choose
from forge.backends.doctor.facts import Facts
from forge.backends.profile import from_toml, named_profile
from forge.errors import ForgeError
from forge.interpreters.scripted import Line, Scripted, call
from stages import events
from stages.offer import demanded_tools, escalation_level, possible_escalation, simpler_tool
from stages.rules import Escalation, EscalationLevel, Limits, TextPolicy
from stages.serialize import Mode
from stages.state import Ledger, State
from stages.tool import ToolEffect, ToolSpec
from stages.wire.deltas import Sampling
from stages.wire.wires import OLLAMA, WIRES, Dialect, ToolChoice, Wire, demandable, demanding, wire
from tests.flows import Desk

RULES = Desk().workflow.rules
EVERY: tuple[EscalationLevel, ...] = get_args(EscalationLevel)


@tool(effect="read")
def search(text: str, limit: int = 10, kind: str = "any") -> str:
    """Search."""
    if kind != "any":
        raise ValueError(f"there is no kind {kind!r}")
    return f"found {text}"


@tool
def finish(result: str = "") -> str:
    """Finish."""
    return result


def workflow(*levels: EscalationLevel, **options: object) -> Workflow:
    return Workflow(
        "search",
        tools=[search, finish],
        required_steps=["search"],
        terminal_tool="finish",
        escalation=Escalation(levels=levels),
        **options,  # type: ignore[arg-type]  # options of a test, passed on as they are
    )


def possible(
    mode: Mode, dialect: Dialect, *, on_text: TextPolicy = "nudge", body: dict[str, object] | None = None
) -> str:
    rules = replace(workflow(*EVERY).rules, on_text=on_text)
    return " ".join(possible_escalation(rules, mode, wire(dialect), Sampling(extra=body or {})).levels)


FULL = Dialect(constrain="json_schema", tool_choice="required")
CLAUDE = Dialect(wire="anthropic", tool_choice="named")


@pytest.mark.parametrize(
    ("mode", "dialect", "on_text", "body", "levels"),
    [
        ("native", FULL, "nudge", {}, "open narrow pin call constrained prompted"),
        ("native", Dialect(), "nudge", {}, "open narrow pin prompted"),
        ("native", FULL, "accept", {}, "open narrow pin call constrained prompted"),
        ("constrained", FULL, "nudge", {}, "open narrow pin simple prompted"),
        ("prompted", FULL, "nudge", {}, "open narrow pin constrained prompted"),
        ("prompted", Dialect(), "nudge", {}, "open narrow pin"),
        ("native", CLAUDE, "nudge", {}, "open narrow pin call prompted"),
        ("native", CLAUDE, "nudge", {"thinking": {"type": "enabled"}}, "open narrow pin prompted"),
    ],
)
def test_what_a_backend_cannot_do_is_skipped(
    mode: Mode, dialect: Dialect, on_text: TextPolicy, body: dict[str, object], levels: str
) -> None:
    assert possible(mode, dialect, on_text=on_text, body=body) == levels


def test_a_level_after_a_change_of_mode_is_judged_by_that_mode() -> None:
    rules = workflow("constrained", "call", "simple").rules
    assert possible_escalation(rules, "native", wire(FULL), Sampling()).levels == ("constrained", "simple")


def test_without_optional_arguments_nothing_is_simpler() -> None:
    rules = replace(RULES, escalation=Escalation(levels=("simple", "pin")))
    assert possible_escalation(rules, "constrained", wire(FULL), Sampling()).levels == ("pin",)


@pytest.mark.parametrize(
    ("retries", "turn", "levels"),
    [(1, 1, "open"), (2, 2, "call"), (3, 3, "pin"), (0, 2, "open"), (0, 3, "call")],
)
def test_two_replies_in_a_row_without_a_call_are_a_circle(retries: int, turn: int, levels: str) -> None:
    rules = workflow("call", "pin").rules
    assert escalation_level(rules, State(history=(), ledger=Ledger(turn=turn, retries=retries))) == levels


OBJECT: dict[str, object] = {"type": "object", "properties": {"a": {}, "b": {}}, "required": ["a"]}


@pytest.mark.parametrize(
    ("schema", "effect", "left"),
    [
        (OBJECT, "read", ["a"]),
        (OBJECT, "write", ["a", "b"]),
        (OBJECT, "terminal", ["a", "b"]),
        (OBJECT | {"required": []}, "read", []),
        (OBJECT | {"required": ["a", "b"]}, "read", ["a", "b"]),
        (OBJECT | {"anyOf": [{"required": ["b"]}]}, "read", ["a", "b"]),
        (OBJECT | {"minProperties": 2}, "read", ["a", "b"]),
    ],
    ids=["read", "write", "terminal", "all optional", "none optional", "one of several needed", "so many needed"],
)
def test_what_is_left_of_a_tool(schema: dict[str, object], effect: ToolEffect, left: list[str]) -> None:
    spec = ToolSpec(name="t", description="", parameters=Raw(msgspec.json.encode(schema)), effect=effect)
    assert list(msgspec.json.decode(simpler_tool(spec).parameters)["properties"]) == left


ANY, ONE = ("look", "fail"), ("look",)


@pytest.mark.parametrize(
    ("dialect", "tools", "choice"),
    [
        (Dialect(tool_choice="required"), ONE, "required"),
        (Dialect(tool_choice="named"), ANY, "required"),
        (Dialect(tool_choice="named"), ONE, {"type": "function", "function": {"name": "look"}}),
        (CLAUDE, ANY, {"type": "any"}),
        (CLAUDE, ONE, {"type": "tool", "name": "look"}),
        (replace(CLAUDE, tool_choice="required"), ONE, {"type": "any"}),
    ],
)
def test_the_demand_in_each_protocol(dialect: Dialect, tools: tuple[str, ...], choice: object) -> None:
    spoken = wire(dialect)
    asked = demanding(spoken.tail(spoken.tools(RULES.tools), None), spoken, tools)
    fields = msgspec.json.decode(asked)
    assert fields["tool_choice"] == choice
    assert len(fields["tools"]) == len(RULES.tools)


@pytest.mark.parametrize("dialect", [Dialect(), OLLAMA.dialect], ids=["none", "ollama"])
def test_what_a_backend_does_not_take_is_never_sent(dialect: Dialect) -> None:
    with pytest.raises(ValueError, match="cannot be told"):
        demanding(Raw(b'{"tools":[]}'), wire(dialect), ONE)


@pytest.mark.parametrize("spoken", WIRES.values(), ids=WIRES)
def test_a_wire_does_what_it_says_that_it_can(spoken: Wire) -> None:
    for way in spoken.constraints:
        dialect = replace(spoken.dialect, constrain=way)
        assert b'{"const":1}' in bytes(wire(dialect).tail(None, Raw(b'{"const":1}')))
    told = wire(replace(spoken.dialect, context_tokens=4321)).head("m", Sampling(), ())
    assert (b"4321" in bytes(told)) == spoken.sets_context
    assert demandable(spoken, Sampling()) == (spoken.demand is not None)
    for option in spoken.excludes_demand:
        assert not demandable(spoken, Sampling(extra={option: {"type": "enabled"}}))


@pytest.mark.parametrize(
    ("name", "takes"),
    [
        ("openai", "named"),
        ("vllm", "named"),
        ("anthropic", "named"),
        ("lm-studio", "required"),
        *((name, "none") for name in ("ollama", "llama-server", "llamafile", "openai-compatible")),
    ],
)
def test_what_each_profile_says(name: str, takes: ToolChoice) -> None:
    assert named_profile(name).dialect(1).tool_choice == takes


def test_a_profile_that_contradicts_itself_is_refused() -> None:
    for text in ('wire = "ollama"', 'mode = "prompted"\nnative_calls = false'):
        with pytest.raises(ForgeError, match="needs tools in the request"):
            from_toml(f'name = "mine"\ntool_choice = "named"\n{text}')


def tail(request: bytes) -> dict[str, object]:
    fields: dict[str, object] = msgspec.json.decode(request)
    return {name: value for name, value in fields.items() if name in {"tool_choice", "response_format"}}


def test_words_twice_in_a_row_and_the_next_request_demands_the_pending_step() -> None:
    model = Scripted(["Sure!", "I will search now.", call("search", text="a"), call("finish", result="ok")])
    seen: list[events.Event] = []
    run_sync(workflow("call"), "Go.", backend=model, observer=seen.append).unwrap()
    named = {"tool_choice": {"type": "function", "function": {"name": "search"}}}
    assert [tail(request) for request in model.requests] == [{}, {}, named, {}]
    assert [e.tools for e in seen if isinstance(e, events.Narrowed)] == [("search",)]
    assert not [e for e in seen if isinstance(e, events.PrefixLost)], "the tools in the prompt are the same"


def test_words_are_not_forbidden_where_they_are_welcome() -> None:
    rules = replace(workflow("call").rules, on_text="accept")
    state = State(history=(), ledger=Ledger(turn=2, retries=2))
    assert demanded_tools(rules, state) == ("search",), "a step is pending"
    assert demanded_tools(replace(rules, required=()), state) == ()


def requests(level: EscalationLevel, script: list[Line], mode: Mode = "native") -> tuple[bytes, ...]:
    model = Scripted(script, mode=mode)
    run_sync(workflow(level, limits=Limits(max_tool_errors=9)), "Go.", backend=model).unwrap()
    model.assert_complete()
    return model.requests


WRONG = call("search", text="a", kind="cats")
END = call("finish", result="ok")


def test_a_search_that_fails_by_its_optional_argument_is_offered_without_it() -> None:
    first, _, third, last = requests("simple", [WRONG, WRONG, call("search", text="a"), END], "constrained")
    assert b'"kind"' in msgspec.json.encode(tail(first))
    assert b'"kind"' not in msgspec.json.encode(tail(third))
    assert msgspec.json.decode(first)["messages"][0] == msgspec.json.decode(third)["messages"][0], "nor the prompt"
    assert b'"finish"' in msgspec.json.encode(tail(last))


@pytest.mark.parametrize(
    ("mode", "level", "schema"),
    [("native", "constrained", True), ("native", "prompted", False), ("constrained", "prompted", False)],
)
def test_another_mode_as_the_last_resort_stays(mode: Mode, level: EscalationLevel, *, schema: bool) -> None:
    texts = ['{"tool":"search","args":{"text":"a"}}', '{"tool":"finish","args":{"result":"ok"}}']
    model = Scripted(["Sure!", "I will search.", *texts], mode=mode)
    seen: list[events.Event] = []
    finished = run_sync(workflow(level), "Go.", backend=model, observer=seen.append).unwrap()
    assert finished.value == "ok"
    assert [e for e in seen if isinstance(e, events.ModeChanged)] == [events.ModeChanged(turn=3, mode=level)]
    assert [("response_format" in tail(request)) for request in model.requests[2:]] == [schema, schema]
    assert all(b'"tools":' not in request for request in model.requests[2:])
    assert finished.state.sent.mode == level


@pytest.mark.parametrize(
    ("facts", "takes"),
    [
        (Facts(calls="native", required=True, named=True), "named"),
        (Facts(calls="native", required=True, named=False), "required"),
        (Facts(calls="native", required=False, named=True), "none"),
        (Facts(kind="vllm"), "named"),
        (Facts(kind="vllm", calls="refused"), "none"),
    ],
)
def test_what_the_doctor_found_goes_before_what_is_known(facts: Facts, takes: ToolChoice) -> None:
    assert choose(facts, named_profile(facts.kind)).tool_choice == takes
