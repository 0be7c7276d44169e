"""Halves of surrogate pairs crash nothing, from whatever side they come: where text comes in they become U+FFFD."""

import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from forge import ForgeError, Limits, Redact, ToolDef, Workflow, replay, run_sync, tool
from forge.backends import Server
from forge.guardrails import Guardrails, RunCalls
from forge.interpreters.scripted import Scripted
from stages.decoding import is_sound, sound, sound_struct
from stages.effect import Approved, Ask, Fault, RawCall, Rejected, Reply
from stages.message import Assistant, History, User
from stages.saved import load, save
from stages.state import Memo
from stages.wire.target import Mode

HALF = "a\ud800b\udcff"
texts = st.text(st.sampled_from('a<"\\{é😀\ud800\udbff\udc00\udfff'), max_size=6)


class Echoing:
    """A workflow whose tools return, raise and show a text that was made elsewhere."""

    def __init__(self, text: str, system_prompt: str = "") -> None:
        self.text = text
        self.workflow = Workflow(
            "w",
            tools=[self.echo, self.fail, self.table, tool(approval=True)(self.pay), self.finish],
            terminal_tool="finish",
            system_prompt=system_prompt,
            limits=Limits(max_iterations=30, max_retries_per_step=20, max_tool_errors=20, max_repeats=None),
            nudges={"retry": lambda _: f"Again: {text}"},
        )

    def echo(self, text: str = "") -> str:
        """Echo."""
        return text + self.text

    def fail(self) -> str:
        """Fail."""
        raise RuntimeError(self.text)

    def table(self) -> dict[str, list[str]]:
        """Show a table."""
        return {self.text: [self.text]}

    def pay(self, to: str) -> str:
        """Pay."""
        return to

    def finish(self, result: str = "") -> str:
        """Finish."""
        return result

    async def ask(self, effect: Ask) -> Approved | Rejected:
        """A person who edits the arguments, or refuses, with that text."""
        if "a" in self.text:
            return Rejected(digest=effect.digest, reason=self.text)
        return Approved(digest=effect.digest, edited=json.dumps({"to": self.text}, ensure_ascii="é" in self.text))


def script(text: str) -> list[str | Reply | Fault]:
    """Replies with the text wherever a server could put it."""
    escaped, bare = json.dumps({"text": text}), json.dumps({"text": text}, ensure_ascii=False)
    calls = [("echo", escaped), ("echo", bare), ("echo", text), (f"echo{text}", "{}"), ("fail", "{}"), ("table", "{}")]
    calls.append(("pay", json.dumps({"to": text})))
    replies = [Reply(calls=(RawCall(id=text, name=name, arguments=given),)) for name, given in calls]
    said = Reply(text=text, reasoning=text, sealed=text, finish=text)
    found = f'<tool_call>{{"name": "echo", "arguments": {bare}}}</tool_call>'
    return [text, said, found, *replies, Reply(calls=(RawCall(name="finish", arguments='{"result": "ok"}'),))]


@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=texts, mode=st.sampled_from(["native", "prompted", "constrained"]))
@example(text=HALF, mode="native")
def test_a_run_with_halves_everywhere_is_recorded_and_replayed(tmp_path: Path, text: str, mode: Mode) -> None:
    given_ = Echoing(text, system_prompt="Do {what}.")
    path = tmp_path / "run.jsonl"
    path.unlink(missing_ok=True)
    earlier: History = (User(text=text), Assistant(text=text)) if "é" in text else ()
    ended = run_sync(
        given_.workflow,
        f"Go. {text}",
        backend=Scripted(script(text), mode=mode),
        ask=given_.ask,
        journal=str(path),
        prompt_vars={"what": text},
        initial_messages=earlier,
    )
    assert replay(path, given_.workflow) == ended
    state = ended.unwrap().state
    assert load(save(state)) == replace(state, memo=Memo())


@given(st.lists(texts, max_size=3))
def test_a_value_is_made_sound_in_all_its_parts_and_is_itself_where_it_is(parts: list[str]) -> None:
    calls = tuple(RawCall(id=part, name=part, arguments=part) for part in parts)
    reply = Reply(text="".join(parts), calls=calls)
    whole = sound_struct(reply)
    assert whole == replace(
        reply,
        text=sound(reply.text),
        calls=tuple(RawCall(id=sound(p), name=sound(p), arguments=sound(p)) for p in parts),
    )
    assert (whole is reply) == all(map(is_sound, parts))
    assert sound_struct(whole) is whole


@given(texts)
def test_the_middleware_takes_them_too(text: str) -> None:
    guardrails = Guardrails(Echoing(text).workflow)
    guardrails.check(text)
    function = {"name": "echo", "arguments": json.dumps({"text": text}, ensure_ascii=False)}
    action = guardrails.check({"choices": [{"message": {"content": text, "tool_calls": [{"function": function}]}}]})
    assert isinstance(action, RunCalls)
    guardrails.record({call.id: text for call in action.calls})
    assert is_sound(str(guardrails.to_json()))


def test_what_a_programmer_writes_is_refused_in_words(tmp_path: Path) -> None:
    @tool
    def end() -> None:
        """End."""

    for make in (
        lambda: Workflow(HALF, tools=[end], terminal_tool="end"),
        lambda: Workflow("w", tools=[end], terminal_tool="end", system_prompt=HALF),
        lambda: Workflow("w", tools=[tool(description=HALF)(end.function), end], terminal_tool="end"),
        lambda: Workflow(
            "w",
            tools=[
                ToolDef(name="t", description="d", parameters={"type": "object", "title": HALF}, function=print),
                end,
            ],
            terminal_tool="end",
        ),
        lambda: Server(f"http://127.0.0.1:9/{HALF}"),
        lambda: Server("http://127.0.0.1:9", api_key=HALF),
        lambda: replay(tmp_path / HALF, Workflow("w", tools=[end], terminal_tool="end")),
    ):
        with pytest.raises(ForgeError) as caught:
            make()
        assert str(caught.value)


def test_a_secret_with_a_half_is_hidden_as_it_stands_in_the_journal(tmp_path: Path) -> None:
    given_ = Echoing("secret-" + HALF)
    backend = Scripted([Reply(calls=(RawCall(name="echo", arguments="{}"),)), *script("x")[-1:]])
    path = tmp_path / "run.jsonl"
    hidden = Redact(values=(given_.text,))
    run_sync(given_.workflow, "Go.", backend=backend, journal=str(path), redact=hidden)
    assert b"secret" not in path.read_bytes()
