"""Laws of shaped requests: the body says what the nouns say, what nothing applies to stays to the byte, none breaks."""

from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from forge.connection import Setup
from forge.proxy.shaping import Shaped, Shaping, shaped_request
from stages.message import Assistant, History, System, Tool
from stages.wire.server.errors import RequestError
from stages.wire.server.request import ServerRequest
from stages.wire.server_wires import CHAT, MESSAGES, RESPONSES, ServerWire
from stages.wire.wires import Dialect
from tests.property.test_server_wire_laws import members

TEXT = st.sampled_from(
    (
        "",
        "Be brief.\n",
        "<think>Hm.</think> Well. ",
        "word " * 300,
        "größer 漢字 🙂",
    )
)
NAMES = ("look", "say_it", "fly", "respond")
PARAMETERS = {"type": "object", "properties": {"at": {"type": "integer"}}}


def parts() -> st.SearchStrategy[Any]:
    one = st.builds(lambda text: {"type": "text", "text": text}, TEXT)
    marked = st.builds(lambda text: {"type": "text", "text": text, "cache_control": {"type": "ephemeral"}}, TEXT)
    return TEXT | st.lists(one | marked, min_size=1, max_size=3)


@st.composite
def chat_bodies(draw: st.DrawFn) -> dict[str, Any]:
    messages: list[dict[str, Any]] = []
    for turn in range(draw(st.integers(1, 12))):
        match draw(st.integers(0, 4)):
            case 0:
                messages.append({"role": draw(st.sampled_from(("system", "developer"))), "content": draw(parts())})
            case 1 | 2:
                messages.append({"role": "user", "content": draw(parts()), "odd": turn})
            case 3:
                thought = draw(st.sampled_from(({}, {"reasoning_content": "Hm."}, {"reasoning": "Hm."})))
                messages.append({"role": "assistant", "content": draw(TEXT), **thought})
            case _:
                function = {"name": draw(st.sampled_from(NAMES)), "arguments": "{}"}
                call = {"id": f"c{turn}", "type": "function", "function": function}
                messages.append({"role": "assistant", "tool_calls": [call], "content": draw(st.none() | TEXT)})
                messages.append({"role": "tool", "tool_call_id": f"c{turn}", "content": draw(TEXT)})
    messages = messages or [{"role": "user", "content": "Hi."}]
    offered = draw(st.lists(st.sampled_from(NAMES), max_size=4))
    tools = [{"type": "function", "function": {"name": name, "parameters": PARAMETERS}} for name in offered]
    choice = draw(st.sampled_from(({}, {"tool_choice": "auto"}, {"tool_choice": "none"})))
    options: dict[str, Any] = draw(
        st.sampled_from(({}, {"temperature": 0.5}, {"chat_template_kwargs": {"a": 1}}, {"n": 2}))
    )
    offers: dict[str, Any] = {"tools": tools, **choice} if tools else {}
    return {"model": "m", "messages": messages, **offers, **options, "odd": [1]}


@st.composite
def message_bodies(draw: st.DrawFn) -> dict[str, Any]:
    messages: list[dict[str, Any]] = [{"role": "user", "content": draw(parts())}]
    for turn in range(draw(st.integers(0, 8))):
        match draw(st.integers(0, 2)):
            case 0:
                messages.append({"role": "assistant", "content": draw(TEXT) or "Well."})
            case 1:
                use = {"type": "tool_use", "id": f"c{turn}", "name": draw(st.sampled_from(NAMES)), "input": {}}
                messages.append({"role": "assistant", "content": [{"type": "text", "text": "Let me see."}, use]})
                result = {"type": "tool_result", "tool_use_id": f"c{turn}", "content": draw(TEXT)}
                messages.append({"role": "user", "content": [result]})
                continue
            case _:
                messages.append({"role": "system", "content": draw(parts())})
        messages.append({"role": "user", "content": draw(parts())})
    names = draw(st.lists(st.sampled_from(NAMES), max_size=4))
    tools = [{"name": name, "input_schema": PARAMETERS} for name in names]
    system = draw(st.sampled_from(({}, {"system": draw(parts())})))
    return {"model": "m", "max_tokens": 4096, "messages": messages, **({"tools": tools} if tools else {}), **system}


SHAPINGS = st.builds(
    Shaping,
    context_tokens=st.sampled_from((None, None, 512, 900, 3000)),
    hide_tools=st.sampled_from(((), "fly", ("look", "say*"), "*")),
    respond=st.booleans(),
    thinking=st.sampled_from((None, "on", "off")),
    sampling=st.sampled_from((None, "recommended")),
)
MODEL = ("Qwen3-4B-Instruct-2507-Q4_K_M",)


def decoded(wire: ServerWire, body: bytes) -> ServerRequest:
    request = wire.decode_request(body)
    assert isinstance(request, ServerRequest), request
    return request


def shaped(request: ServerRequest, shaping: Shaping, setup: Setup, *, same: bool) -> Shaped | None:
    """What is made of it; None where it is refused, which only a demand for a hidden tool may cause."""
    found = shaped_request(request, shaping, setup, MODEL, same=same)
    if isinstance(found, RequestError):
        assert found.param == "tool_choice"
        return None
    return found


def said(history: History) -> list[object]:
    """What a model reads of a history."""
    return [
        (type(m), m.text, [(c.id, c.name, c.arguments) for c in m.calls])
        if isinstance(m, Assistant)
        else (type(m), m.text, m.call_id if isinstance(m, Tool) else "")
        for m in history
        if not isinstance(m, System) or m.text
    ]


@given(chat_bodies(), SHAPINGS)
def test_the_body_of_a_chat_request_says_what_the_nouns_say(body: dict[str, Any], shaping: Shaping) -> None:
    request = decoded(CHAT, msgspec.json.encode(body))
    made = shaped(request, shaping, Setup(), same=True)
    if made is None:
        return
    read = decoded(CHAT, made.request.body)
    assert said(read.history) == said(made.request.history)
    assert [spec.name for spec in read.specs] == [spec.name for spec in made.request.specs]
    assert {spec.name for spec in request.specs if spec.name not in {s.name for s in read.specs}} <= set(NAMES)
    assert (read.sampling.temperature, read.n) == (made.request.sampling.temperature, request.n)
    now = msgspec.json.decode(made.request.body)
    assert (now["odd"], now["model"]) == (body["odd"], body["model"])
    for name, value in body.get("chat_template_kwargs", {}).items():
        assert now["chat_template_kwargs"][name] == value


@given(message_bodies(), SHAPINGS)
def test_the_body_of_a_request_of_anthropics_says_what_the_nouns_say(body: dict[str, Any], shaping: Shaping) -> None:
    request = decoded(MESSAGES, msgspec.json.encode(body))
    made = shaped(request, shaping, Setup(dialect=Dialect(wire="anthropic")), same=True)
    if made is None:
        return
    read = decoded(MESSAGES, made.request.body)
    assert [spec.name for spec in read.specs] == [spec.name for spec in made.request.specs]
    calls = [message.calls for message in read.history if isinstance(message, Assistant)]
    assert calls == [message.calls for message in made.request.history if isinstance(message, Assistant)]
    if not made.cut:
        assert said(read.history) == said(made.request.history)


BODIES = st.one_of(chat_bodies().map(lambda body: (CHAT, body)), message_bodies().map(lambda body: (MESSAGES, body)))
ODD = st.sampled_from(
    (None, "", 0, True, [], {}, [None], {"type": "text"}, {"name": "look"}, {"function": None}, "tool")
)


@given(BODIES, SHAPINGS, ODD, st.data())
def test_no_request_that_is_read_breaks_the_shaper(
    sent: tuple[ServerWire, dict[str, Any]], shaping: Shaping, odd: object, data: st.DataObject
) -> None:
    wire, body = sent
    holder, key = data.draw(st.sampled_from(members(body)))
    holder[key] = odd
    request = wire.decode_request(msgspec.json.encode(body))
    if isinstance(request, ServerRequest):
        setup = Setup(dialect=Dialect(wire="openai" if wire is CHAT else "anthropic"))
        made = shaped(request, shaping, setup, same=True)
        assert made is None or decoded(wire, made.request.body)


@given(BODIES)
def test_without_a_policy_every_byte_stays(sent: tuple[ServerWire, dict[str, Any]]) -> None:
    wire, body = sent
    request = decoded(wire, msgspec.json.encode(body))
    made = shaped(request, Shaping(), Setup(), same=True)
    assert made is not None
    assert made.request is request


@given(chat_bodies(), SHAPINGS)
def test_shaping_twice_is_shaping_once(body: dict[str, Any], shaping: Shaping) -> None:
    """So that a server sees the same bytes from turn to turn: nothing in them comes from anywhere else."""
    request = decoded(CHAT, msgspec.json.encode(body))
    one, two = (shaped(request, shaping, Setup(), same=True) for _ in range(2))
    assert one == two
    if one is not None and shaping.context_tokens is None:
        again = shaped(decoded(CHAT, one.request.body), shaping, Setup(), same=True)
        assert again is not None
        assert again.request.body == one.request.body


@given(BODIES, SHAPINGS)
def test_for_a_backend_of_another_protocol_the_body_is_left_alone(
    sent: tuple[ServerWire, dict[str, Any]], shaping: Shaping
) -> None:
    wire, body = sent
    request = decoded(wire, msgspec.json.encode(body))
    made = shaped(request, shaping, Setup(dialect=Dialect(wire="ollama")), same=False)
    assert made is None or made.request.body == request.body


def test_responses_are_shaped_too() -> None:
    item = {"type": "function", "name": "fly", "parameters": PARAMETERS}
    body = {"model": "m", "input": "Hi.", "tools": [item, {**item, "name": "look"}]}
    made = shaped(decoded(RESPONSES, msgspec.json.encode(body)), Shaping(hide_tools="fly"), Setup(), same=False)
    assert made is not None
    assert [spec.name for spec in made.request.specs] == ["look"]
