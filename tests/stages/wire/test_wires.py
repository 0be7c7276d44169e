"""The client wires: requests byte for byte in each protocol and dialect, and what is read of answers."""

import json
from pathlib import Path
from typing import Any, get_args

import msgspec
import pytest
from msgspec import Raw
from msgspec.structs import replace

from forge.backends.doctor.examination import choose
from forge.backends.doctor.facts import Facts
from forge.backends.profile import from_toml, named_profile
from forge.errors import ForgeError
from forge.proxy.exchange import adapted
from stages.effect import Fault, RawCall, Reply, Request, Usage
from stages.message import Assistant, History, Kind, System, Tool, ToolCall, User
from stages.tool import ToolSpec
from stages.wire.faults import BODY_KEPT
from stages.wire.sampling import Sampling
from stages.wire.server.request import ServerRequest
from stages.wire.wires import (
    ANTHROPIC,
    OLLAMA,
    OPENAI,
    WIRES,
    Constrain,
    Dialect,
    ToolChoice,
    Wire,
    WireName,
    demandable,
    field,
    wire,
)


@pytest.mark.parametrize("spoken", WIRES.values(), ids=WIRES)
def test_a_wire_does_what_it_says_that_it_can(spoken: Wire) -> None:
    for way in spoken.constraints:
        dialect = replace(spoken.dialect, constrain=way)
        assert b'{"const":1}' in bytes(wire(dialect).tail(None, Raw(b'{"const":1}')))
    told = wire(replace(spoken.dialect, context_tokens=4321)).head("m", Sampling(), ())
    assert (b"4321" in bytes(told)) == spoken.sets_context
    assert demandable(spoken, Sampling()) == spoken.demands
    for option in spoken.excludes_demand:
        assert not demandable(spoken, Sampling(extra={option: {"type": "enabled"}}))


QUIRKS = [
    (Dialect(option_names={"max_tokens": "most"}), {"max_tokens": 5, "x": 2}, {"most": 5, "x": 2}),
    (Dialect(option_names={"max_tokens": "most"}), {"max_tokens": 7, "most": 5, "x": 2}, {"most": 5, "x": 2}),
]
"""Each quirk about fields, with those of a request and what the backend takes for them."""


@pytest.mark.parametrize(("dialect", "given", "taken"), QUIRKS)
def test_a_backend_gets_its_own_fields_whoever_wrote_them(
    dialect: Dialect, given: dict[str, object], taken: dict[str, object]
) -> None:
    passed = ServerRequest(protocol="chat", body=json.dumps(given).encode(), model="m", history=())
    written = wire(replace(dialect, tools_body=given)).tail(Raw(b"[]"), None)
    assert json.loads(adapted(passed, "", dialect).body) == taken
    assert json.loads(bytes(written)) == {"tools": [], **taken}
    assert adapted(passed, "", Dialect()) is passed


def test_a_client_hears_of_an_option_that_the_backend_lacks_and_forge_refuses_its_own() -> None:
    lacking = Dialect(option_names={"top_k": ""})
    passed = ServerRequest(protocol="chat", body=b'{"top_k":1,"x":2}', model="m", history=())
    assert adapted(passed, "", lacking) is passed
    for dialect in (lacking, replace(lacking, wire="ollama")):
        with pytest.raises(ValueError, match="top_k"):
            wire(dialect).head("m", Sampling(top_k=1), ())
    with pytest.raises(ValueError, match="no min_p, seed; leave"):
        ANTHROPIC.head("m", Sampling(min_p=0.1, seed=1), ())
    assert b'"top_k":5' in bytes(wire(lacking).head("m", Sampling(extra={"top_k": 5}), ()))


def test_a_profile_that_contradicts_itself_is_refused() -> None:
    for text in ('wire = "ollama"', 'mode = "prompted"\nnative_calls = false'):
        with pytest.raises(ForgeError, match="needs tools in the request"):
            from_toml(f'name = "mine"\ntool_choice = "named"\n{text}')


@pytest.mark.parametrize(
    ("facts", "takes"),
    [
        (Facts(calls="native", required=True, named=True), "named"),
        (Facts(calls="native", required=False, named=True), "none"),
        (Facts(kind="vllm"), "named"),
        (Facts(kind="vllm", calls="refused"), "none"),
    ],
)
def test_what_the_doctor_found_goes_before_what_is_known(facts: Facts, takes: ToolChoice) -> None:
    assert choose(facts, named_profile(facts.kind)).tool_choice == takes


@pytest.mark.parametrize("constrain", [each for each in get_args(Constrain) if each != "none"])
def test_each_backend_gets_the_schema_in_its_own_field(constrain: Constrain) -> None:
    ((name, value),) = json.loads(msgspec.json.encode(field(Raw(b'{"type":"object"}'), constrain))).items()
    assert name in {"response_format", "format", "structured_outputs", "guided_json"}
    assert '"type": "object"' in json.dumps(value)


def test_a_backend_without_one_is_told_what_to_do() -> None:
    with pytest.raises(ValueError, match="use the mode native or prompted"):
        field(Raw(b"{}"), "none")


# --- requests and answers of each protocol

LOOK, WRITE = (ToolSpec(name=n, description=f"{n}.", parameters=Raw(b'{"type":"object"}')) for n in ("look", "write"))
A = ToolCall(id="call_000000001", name="look", arguments='{"what":"a"}')
B = ToolCall(id="call_000000002", name="look", arguments='{"what":{"b":[1,2.50]}}')
HISTORY: History = (
    System(text="Do it."),
    User(text="Go."),
    Assistant(text="Both.", calls=(A, B), reasoning="hidden", turn=1),
    Tool(call_id=A.id, name="look", text="7", turn=1),
    Tool(call_id=B.id, name="look", text="No such thing.", kind=Kind.RETRY_NUDGE, turn=1),
    User(text="Go on.", kind=Kind.ITERATION_WARNING, turn=1),
)


def plain(role: str, content: str, **more: object) -> dict[str, object]:
    return {"role": role, "content": content, **more}


def text(words: str) -> dict[str, str]:
    return {"type": "text", "text": words}


def blocks(role: str, *content: object) -> dict[str, object]:
    return {"role": role, "content": [*content]}


def use(call: ToolCall) -> dict[str, object]:
    return {"type": "tool_use", "id": call.id, "name": call.name, "input": json.loads(call.arguments)}


def result(call: ToolCall, **more: object) -> dict[str, object]:
    return {"type": "tool_result", "tool_use_id": call.id, **more}


def sent(spoken: Wire, history: History, sampling: Sampling = Sampling()) -> dict[str, Any]:  # noqa: B008 - a value
    tail = spoken.tail(spoken.tools((LOOK, WRITE)), None)
    request = Request(head=spoken.head("m", sampling, history), messages=spoken.messages(history), tail=tail)
    found: dict[str, Any] = json.loads(request.body)
    return found


SPECS = [
    {"name": each.name, "description": each.description, "parameters": {"type": "object"}} for each in (LOOK, WRITE)
]
FUNCTIONS = [{"type": "function", "function": spec} for spec in SPECS]
CALLS = [{"type": "function", "id": c.id, "function": {"name": c.name, "arguments": c.arguments}} for c in (A, B)]
OLLAMA_CALLS = [{"function": {"name": c.name, "arguments": json.loads(c.arguments)}} for c in (A, B)]
REQUESTS: dict[WireName, dict[str, object]] = {
    "openai": {
        "temperature": 0.5,
        "max_tokens": 1024,
        "messages": [
            plain("system", "Do it."),
            plain("user", "Go."),
            plain("assistant", "Both.", tool_calls=CALLS),
            plain("tool", "7", tool_call_id=A.id),
            plain("tool", "No such thing.", tool_call_id=B.id),
            plain("user", "Go on."),
        ],
        "tools": FUNCTIONS,
    },
    "ollama": {
        "stream": False,
        "options": {"num_predict": 1024, "temperature": 0.5},
        "messages": [
            plain("system", "Do it."),
            plain("user", "Go."),
            plain("assistant", "Both.", tool_calls=OLLAMA_CALLS),
            plain("tool", "7", tool_name="look"),
            plain("tool", "No such thing.", tool_name="look"),
            plain("user", "Go on."),
        ],
        "tools": FUNCTIONS,
    },
    "anthropic": {
        "max_tokens": 1024,
        "temperature": 0.5,
        "system": [text("Do it.")],
        "messages": [
            blocks("user", text("Go.")),
            blocks("assistant", text("Both."), use(A), use(B)),
            blocks("user", result(A, content="7"), result(B, content="No such thing.", is_error=True), text("Go on.")),
        ],
        "tools": [
            {"name": one.name, "description": one.description, "input_schema": {"type": "object"}}
            for one in (LOOK, WRITE)
        ],
    },
}


@pytest.mark.parametrize("name", WIRES)
def test_a_request_is_what_the_protocol_says(name: WireName) -> None:
    assert sent(WIRES[name], HISTORY, Sampling(temperature=0.5)) == {"model": "m", **REQUESTS[name]}


def test_ollama_is_told_the_size_of_the_context() -> None:
    dialect = Dialect(wire="ollama", context_tokens=8192, body={"think": False})
    head = json.loads(bytes(wire(dialect).head("m", Sampling(), ())))
    options = {"num_ctx": 8192, "num_predict": 1024}
    assert head == {"model": "m", "options": options, "stream": False, "think": False}


WHAT = Assistant(calls=(replace(A, arguments='{"what": "a",}'),))
TOLD = replace(A, arguments="what is this")
ANSWER = Tool(call_id=A.id, name="look", text="7")
U = User(text="u")
OTHERWISE: list[tuple[Wire, History, list[object]]] = [
    (OLLAMA, (System(text="a"), U, System(text="b")), [plain("system", "a\n\nb"), plain("user", "u")]),
    # Ollama answers 400 to arguments that are no object, and would for ever.
    (
        OLLAMA,
        (WHAT, ANSWER),
        [plain("assistant", "", tool_calls=OLLAMA_CALLS[:1]), plain("tool", "7", tool_name="look")],
    ),
    (
        OLLAMA,
        (Assistant(calls=(TOLD,)), ANSWER),
        [plain("assistant", "[called look: what is this]"), plain("user", "Result of look:\n7")],
    ),
    (ANTHROPIC, (U, User(text=" \n"), User(text="b")), [blocks("user", text("u"), text("b"))]),
    (
        ANTHROPIC,
        (U, Assistant(text="one"), Assistant(text="two", calls=(A,)), replace(ANSWER, text="")),
        [blocks("user", text("u")), blocks("assistant", text("one"), text("two"), use(A)), blocks("user", result(A))],
    ),
    (
        ANTHROPIC,
        (Assistant(calls=(A, replace(A, id="other"))), ANSWER, U),
        [
            blocks("assistant", text('[called look: {"what":"a"}]\n[called look: {"what":"a"}]')),
            blocks("user", text("Result of look:\n7"), text("u")),
        ],
    ),
    (
        ANTHROPIC,
        (Assistant(calls=(A, B)), replace(ANSWER, call_id=B.id, text="8"), ANSWER),
        [blocks("assistant", use(A), use(B)), blocks("user", result(A, content="7"), result(B, content="8"))],
    ),
    (
        ANTHROPIC,
        (Assistant(calls=(A,)), replace(ANSWER, status="not_run")),
        [blocks("assistant", use(A)), blocks("user", result(A, content="7", is_error=True))],
    ),
]


@pytest.mark.parametrize(("spoken", "history", "messages"), OTHERWISE)
def test_what_a_server_would_refuse_is_written_otherwise(
    spoken: Wire, history: History, messages: list[object]
) -> None:
    assert sent(spoken, history)["messages"] == messages


def test_all_system_prompts_are_kept() -> None:
    """B50b: the last one won."""
    history = (System(text="a"), System(text=" "), U, System(text="b"))
    assert sent(ANTHROPIC, history)["system"] == [text("a\n\nb")]


def test_marks_for_the_cache_stand_where_the_prompt_does_not_change() -> None:
    mark = {"cache_control": {"type": "ephemeral"}}
    request = sent(wire(Dialect(wire="anthropic", prompt_cache=True)), HISTORY)
    assert request.items() >= {**mark, "system": [{**text("Do it."), **mark}]}.items()
    assert [tool.get("cache_control") for tool in request["tools"]] == [None, mark["cache_control"]]


RECORDED = [
    json.loads(line)
    for line in (Path(__file__).parents[2] / "data/llama_server_replies.jsonl").read_text().splitlines()
]


def test_a_real_servers_answers_are_read() -> None:
    for recorded in RECORDED:
        reply = OPENAI.decode(json.dumps(recorded["response"]).encode())
        choice = recorded["response"]["choices"][0]
        assert isinstance(reply, Reply), recorded["name"]
        assert reply.text == (choice["message"].get("content") or "")
        calls = choice["message"].get("tool_calls", [])
        assert [call.name for call in reply.calls] == [call["function"]["name"] for call in calls]
        assert reply.finish == choice["finish_reason"]
        assert isinstance(reply.usage, Usage)


THOUGHT, HIDDEN = '{"type":"thinking","thinking":"First","signature":"EqQB"}', '{"type":"redacted_thinking","data":"x"}'
ANSWERS: list[tuple[Wire, str, Reply]] = [
    (OPENAI, '{"choices":[{"message":{"content":null}}]}', Reply()),
    (OPENAI, '{"choices":[{"message":{"reasoning":"r"}}]}', Reply(reasoning="r")),
    (
        OPENAI,
        '{"choices":[{"message":{"tool_calls":[{"function":{"name":"f","arguments":{"a":1}}},{}]}}]}',
        Reply(calls=(RawCall(name="f", arguments='{"a":1}'), RawCall())),
    ),
    (
        OLLAMA,
        '{"message":{"content":"Once"},"done":true,"done_reason":"length","prompt_eval_count":9,"eval_count":5}',
        Reply(text="Once", finish="length", usage=Usage(prompt=9, completion=5)),
    ),
    (
        OLLAMA,
        '{"message":{"content":"","thinking":"Hm.","tool_calls":[{"function":{"name":"f","arguments":{"n":[1, 2]}}}]}}',
        Reply(reasoning="Hm.", calls=(RawCall(name="f", arguments='{"n":[1, 2]}'),)),
    ),
    (
        OLLAMA,
        r'{"message":{"content":null,"tool_calls":[{"function":{"name":"f","arguments":"{\"a\":1}"}},{}]}}',
        Reply(calls=(RawCall(name="f", arguments='{"a":1}'), RawCall())),
    ),
    (
        ANTHROPIC,
        (
            f'{{"content":[{THOUGHT},{HIDDEN},{{"type":"text","text":"I look."}},'
            '{"type":"tool_use","id":"toolu_1","name":"look","input":{"what": "a"}}],"stop_reason":"tool_use",'
            '"usage":{"input_tokens":10,"cache_creation_input_tokens":100,"cache_read_input_tokens":1000,"output_tokens":50}}'
        ),
        Reply(
            text="I look.",
            reasoning="First",
            sealed=f"[{THOUGHT},{HIDDEN}]",
            calls=(RawCall(id="toolu_1", name="look", arguments='{"what": "a"}'),),
            finish="tool_calls",
            usage=Usage(prompt=1110, completion=50, cached=1000),
        ),
    ),
    (
        ANTHROPIC,
        (
            '{"content":[{"type":"server_tool_use","id":"s","name":"web","input":{}},{"type":"text","text":"a"},'
            '{"type":"new","text":"deep"}],"stop_reason":"end_turn"}'
        ),
        Reply(text="a"),
    ),
    (ANTHROPIC, '{"content":[],"usage":{"input_tokens":1,"output_tokens":0}}', Reply(usage=Usage(prompt=1))),
    (ANTHROPIC, '{"content":[],"stop_reason":"max_tokens"}', Reply(finish="length")),
    (ANTHROPIC, '{"content":[],"stop_reason":"model_context_window_exceeded"}', Reply(finish="length")),
    (ANTHROPIC, '{"content":[],"stop_reason":"refusal"}', Reply(finish="content_filter")),
    (ANTHROPIC, '{"content":[],"stop_reason":"pause_turn"}', Reply(finish="pause_turn")),
]


@pytest.mark.parametrize(("spoken", "answer", "reply"), ANSWERS)
def test_what_servers_leave_out_or_write_otherwise_is_read(spoken: Wire, answer: str, reply: Reply) -> None:
    assert spoken.decode(answer.encode()) == reply


DEEP = '{"a":' * 5000 + "1" + "}" * 5000
NO_ANSWERS: list[tuple[Wire, bytes, str]] = [
    (OPENAI, b"", "is not a chat completion"),
    (OPENAI, b"\xff\xfe", "is not a chat completion"),
    (OPENAI, b'{"choices":[]}', "has no choices"),
    (OPENAI, b'{"choices":[{}]}', "has no message"),
    (OPENAI, b'{"error":{"message":"x"}}', "reports an error: x"),
    (OLLAMA, b'{"error":"model \'qwen\' not found"}', "model 'qwen' not found"),
    (OLLAMA, b'{"message":{},"done":false}\n{"message":{},"done":true}', "is not one of /api/chat"),
    (OLLAMA, b'{"done":true}', "has no message"),
    (
        OLLAMA,
        f'{{"message":{{"tool_calls":[{{"function":{{"arguments":{DEEP}}}}}]}}}}'.encode(),
        "is not one of /api/chat",
    ),
    (
        ANTHROPIC,
        b'{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"},"request_id":"req_1"}',
        "overloaded_error: Overloaded",
    ),
    (ANTHROPIC, b'{"type":"message"}', "has no content"),
    (ANTHROPIC, b'{"content":"Hi."}', "is not a message"),
    (ANTHROPIC, f'{{"content":[{{"type":"tool_use","input":{DEEP}}}]}}'.encode(), "is not a message"),
]


@pytest.mark.parametrize(("spoken", "answer", "says"), NO_ANSWERS, ids=[says for _, _, says in NO_ANSWERS])
def test_what_is_no_answer_is_a_fault_that_says_why(spoken: Wire, answer: bytes, says: str) -> None:
    fault = spoken.decode(answer)
    assert isinstance(fault, Fault)
    assert says in fault.detail
    assert len(fault.body) <= BODY_KEPT
