"""Policies of the proxy: the file, and sessions of real requests that are held to it."""

import json
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from forge.errors import ForgeError
from forge.proxy import ModelPolicy, Policy, ToolPolicy
from forge.proxy.policy_file import given_policy, policy_from_toml
from tests.proxy.test_proxy import Behind, behind
from tests.scripted_model import Line, called, chunk, completion, streamed, whole

FILE = """
required_steps = "read_file"
terminal_tool = ["commit", "push"]
limits = { max_repeats = 2, max_tool_calls = 40 }

[[order]]
tool = "search"
at_most = 3

[tools.commit]
prerequisites = ["run_tests", { tool = "edit_file", match_arg = "path" }]
grounded = { path = "list_files" }

[model."Qwen*"]
required_steps = []
limits.max_repeats = 3

[model."*-coder".calls]
on_violation = "block_call"

[model."*-coder".tools.commit]
errors = ["*rejected*"]
"""


def test_a_models_table_replaces_what_it_names_and_keeps_the_rest() -> None:
    policy = policy_from_toml(FILE)
    general, qwen, coder = policy.of("llama"), policy.of("qwen2.5-coder"), policy.of("Deep-CODER")
    assert (general.required_steps, qwen.required_steps, coder.required_steps) == ("read_file", (), "read_file")
    assert (general.limits.max_repeats, qwen.limits.max_repeats, coder.limits.max_repeats) == (2, 3, 2)
    assert qwen.limits.max_tool_calls == 40
    assert coder.calls.on_violation == "block_call"
    assert qwen.terminal_tool == ("commit", "push")
    assert qwen.order[0].at_most == 3
    assert qwen.tools["commit"] == general.tools["commit"]
    assert coder.tools["commit"] == ToolPolicy(errors=("*rejected*",))


def test_the_first_name_that_a_pattern_matches_counts() -> None:
    one, other = ModelPolicy(scope="answer"), ModelPolicy(scope="session")
    policy = Policy(models=(("gpt*", one), ("q*", other)))
    assert policy.of("gpt-4", "qwen") is one
    assert policy.of("tiny", "qwen") is other
    assert policy.of("tiny") is policy.general


WRONG = """
required_stps = ["a"]
on_violation = "block_call"
limits = { max_repeats = 0, max_seconds = 3 }
terminal_tool = 3

[[order]]
tool = "x"
at_mst = 3
counts_if = "passed"

[[order]]
at_most = "3"

[[order]]
tool = "y"
at_least = 1
distinct = true

[tools.commit]
effct = "read"
prerequisites = ["a", { tool = "read", match = "path" }]

[tools]
b = 3

[model."qwen*"]
calls.on_violation = "block"
model = {}

[model."qwen*".tools.commit]
grounded = 3
"""

FAULTS = [
    "required_stps: unknown key",
    "Did you mean required_steps?",
    "on_violation: it belongs in the table [calls]",
    "[limits] max_repeats is 0; it must be a whole number, at least 1",
    "[limits] max_seconds: unknown key. Known keys: max_tool_calls, max_repeats",
    "terminal_tool is 3; it must be a string or a list of strings",
    "[order number 1] at_mst: unknown key. Did you mean at_most? Known keys: tool, at_step, ",
    "[order number 1] counts_if: unknown key",  # it takes a function
    "[order number 2] at_most is '3'",
    "[order number 2] tool is missing",
    "[order number 3] y: distinct is about several calls",
    "[tools.commit] effct: unknown key",
    "[tools.commit.prerequisites number 2] match: unknown key",
    "Did you mean match_arg?",
    "[tools.b] must be a table",
    "[model.\"qwen*\".calls] on_violation is 'block'; it must be one of block_all, block_call",
    '[model."qwen*"] model: unknown key',
    '[model."qwen*".tools.commit] grounded is 3',
]


def test_all_faults_of_a_file_are_told_at_once_with_their_tables_and_keys(tmp_path: Path) -> None:
    file = tmp_path / "policy.toml"
    file.write_text(WRONG)
    with pytest.raises(ForgeError) as raised:
        given_policy(file)
    said = str(raised.value)
    assert all(line.startswith(f"{file}: ") for line in said.splitlines())
    assert [fault for fault in FAULTS if fault not in said] == [], said
    assert len(said.splitlines()) == len(FAULTS) - 2
    assert said.count("Known keys: tool, at_step") == 1  # once for a table


CONTRADICTORY = """
required_steps = "commit"
terminal_tool = "commit"

[[order]]
tool = "commit"
at_least = 2

[model."a*"]
required_steps = []

[model."a*".tools.read]
prerequisites = "write"

[model."a*".tools.write]
prerequisites = "read"
"""


def test_rules_that_contradict_each_other_are_refused_as_a_workflow_refuses_them() -> None:
    with pytest.raises(ForgeError) as raised:
        policy_from_toml(CONTRADICTORY)
    assert [line.removeprefix("the policy: ") for line in str(raised.value).splitlines()] == [
        "commit: a terminal tool cannot be a required step",
        "order of commit: at_least and each_of are not allowed on a terminal tool",
        '[model."a*"] tool read: it needs write, which needs read: neither can be called',
        '[model."a*"] tool write: it needs read, which needs write: neither can be called',
    ]


def test_a_file_of_a_windows_editor_is_read(tmp_path: Path) -> None:
    file = tmp_path / "policy.toml"
    file.write_bytes(b'\xef\xbb\xbfterminal_tool = "commit"\r\n')
    assert given_policy(file).general.terminal_tool == "commit"


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"a = ", "is not valid TOML: Invalid value (at "),
        (b"\xff", "is not valid UTF-8: byte 0"),
        (b"#" * (1 << 16) + b"#", "has more than 65,536 bytes"),
        (b"max_repeats = " + b"9" * 5000, "is not valid TOML: Exceeds the limit"),
        (b"a" + b".a" * 501 + b" = 1", "a line has more than 500 dots"),
        (b"a = " + b"[" * 30_000, "is not valid TOML: maximum recursion depth"),
        (b'[order]\ntool = "a"', "[order] must be a list of tables; write [[order]]"),
        (b"".join(b"[model.m%d]\n" % n for n in range(101)), "model: there are 101 tables; the maximum is 100"),
    ],
)
def test_a_file_that_is_none_is_refused(tmp_path: Path, content: bytes, said: str) -> None:
    file = tmp_path / "policy.toml"
    file.write_bytes(content)
    with pytest.raises(ForgeError, match=r"policy\.toml") as raised:
        given_policy(file)
    assert said in str(raised.value)
    with pytest.raises(ForgeError, match="No such file"):
        given_policy(tmp_path / "none.toml")


def test_of_ten_thousand_faults_the_first_fifty_are_told() -> None:
    with pytest.raises(ForgeError) as raised:
        policy_from_toml("\n".join(f"key{number} = 1" for number in range(10_000)))
    lines = str(raised.value).splitlines()
    assert (len(lines), lines[-1]) == (51, "the policy: and more")


def test_tools_that_need_one_another_by_many_ways_are_checked_at_once() -> None:
    """By 2^60 ways, and in a chain that is longer than Python's stack is deep."""
    both = (f"[tools.{side}{n}]\nprerequisites = ['a{n + 1}', 'b{n + 1}']" for n in range(60) for side in "ab")
    chain = (f"[tools.c{n}]\nprerequisites = 'c{n + 1}'" for n in range(1010))
    policy_from_toml("\n".join((*both, *chain)))
    with pytest.raises(ForgeError, match="tool c9: it needs c0, which needs c9: neither can be called"):
        policy_from_toml("\n".join(f"[tools.c{n}]\nprerequisites = 'c{(n + 1) % 10}'" for n in range(10)))


def tool(name: str, *required: str) -> dict[str, Any]:
    """A tool of texts."""
    properties = {argument: {"type": "string"} for argument in required}
    schema = {"type": "object", "properties": properties, "required": list(required)}
    return {"type": "function", "function": {"name": name, "description": name, "parameters": schema}}


TOOLS = [tool("read", "path"), tool("edit", "path", "text"), tool("commit", "message"), tool("test")]
READ, TEST = ("read", '{"path":"a.py"}'), ("test", "{}")
EDIT, COMMIT = ("edit", '{"path":"a.py","text":"x"}'), ("commit", '{"message":"Mend a"}')


class Client:
    """A loop as clients have it: it sends the whole conversation each time, and runs what it is told to."""

    def __init__(self, there: Behind, more: dict[str, Any]) -> None:
        self.proxy, self.model, self._more = there, there.model, more
        self.messages: list[dict[str, Any]] = []
        self.outcome = ""

    async def say(self, text: str) -> list[str]:
        """What the reply to the user's words calls."""
        self.messages.append({"role": "user", "content": text})
        return await self._ask()

    async def went(self, *results: str) -> list[str]:
        """What the reply to the results of its calls calls."""
        for call, result in zip(self.messages[-1]["tool_calls"], results, strict=False):
            self.messages.append({"role": "tool", "tool_call_id": call["id"], "content": result})
        return await self._ask()

    async def _ask(self) -> list[str]:
        body = {"model": "tiny", "messages": self.messages, "tools": TOOLS, **self._more}
        status, got, headers = await self.proxy.post("/v1/chat/completions", body)
        assert status == 200, got
        self.outcome = headers["x-forge-outcome"]
        self.messages.append(msgspec.json.decode(got)["choices"][0]["message"])
        return [call["function"]["name"] for call in self.messages[-1].get("tool_calls") or ()]

    @property
    def said(self) -> str:
        """The words of the last reply."""
        return self.messages[-1]["content"] or ""

    def told(self, number: int) -> str:
        """The last message of that request to the model: a correction, where it is a second one."""
        last: str = self.model.body(number)["messages"][-1]["content"]
        return last


@asynccontextmanager
async def client(
    policy: str, *script: Line, profile: str | None = None, retries: int = 2, **more: Any
) -> AsyncIterator[Client]:
    async with behind(*script, profile=profile, policy=policy_from_toml(policy), max_retries=retries) as there:
        yield Client(there, more)


STREAM = {"model": "m", "messages": [{"role": "user", "content": "Go."}], "tools": TOOLS, "stream": True}


async def streamed_by(there: Client) -> str:
    """The stream that answers a session's first request."""
    return (await there.proxy.post("/v1/chat/completions", STREAM))[1].decode()


def calls(*made: tuple[str, str], text: str | None = None, call_id: str = "c") -> Line:
    return whole(completion(text, *made, call_id=call_id))


STEPS = """
required_steps = ["read", "test"]
terminal_tool = "commit"
"""


async def test_a_session_in_which_a_required_step_was_skipped_is_corrected_in_every_request_of_it() -> None:
    """Nothing is kept between the requests: each has the whole conversation."""
    script = (
        calls(COMMIT),
        calls(READ),
        calls(COMMIT, call_id="d"),
        calls(TEST, call_id="e"),
        calls(COMMIT, call_id="f"),
    )
    async with client(STEPS, *script, whole(completion("Committed."))) as there:
        assert await there.say("Mend a.py and commit.") == ["read"]
        assert there.outcome == "retried"
        assert "[StepEnforcementError] You cannot call commit yet. First complete: read, test." in there.told(1)
        assert await there.went("x = 1") == ["test"]
        assert "First complete: test." in there.told(3)
        assert (await there.went("2 passed"), there.outcome) == (["commit"], "clean")
        assert (await there.went("ok"), there.said, there.outcome) == ([], "Committed.", "clean")
        assert not any("StepEnforcementError" in str(message) for message in there.messages)


JSON_READ = '{"tool": "read", "args": {"path": "a.py"}}'


async def test_where_replies_can_be_constrained_the_second_attempt_can_only_be_a_call_that_a_step_needs() -> None:
    """A model of half a billion parameters skips the step again, whatever it is told."""
    script = (calls(COMMIT), whole(completion(JSON_READ)), calls(TEST), calls(COMMIT))
    async with client(STEPS, *script, profile="llama-server", temperature=0.5, seed=7) as there:
        assert (await there.say("Commit."), there.outcome) == (["read"], "retried")
        first, second = there.model.body(0), there.model.body(1)
        assert [tool["function"]["name"] for tool in first["tools"]] == ["read", "edit", "commit", "test"]
        assert "tools" not in second
        assert (second["model"], second["temperature"], second["seed"]) == ("tiny", 0.5, 7)
        constraint = msgspec.json.encode(second["response_format"]).decode()
        assert [f'"{name}"' in constraint for name in ("read", "test", "commit", "edit")] == [
            True,
            True,
            False,
            False,
        ]
        assert "[StepEnforcementError]" in there.told(1)
        assert await there.went("x = 1") == ["test"]
        assert await there.went("fine") == ["commit"]
        assert "response_format" not in there.model.body(3)


REFUSED = whole({"error": {"code": 400, "message": "Failed to parse grammar", "type": "invalid_request_error"}}, 400)


async def test_a_backend_that_refuses_the_constrained_attempt_is_asked_in_plain_words_from_then_on() -> None:
    script = (calls(COMMIT), REFUSED, calls(COMMIT), calls(READ))
    async with client(STEPS, *script, profile="llama-server", retries=3) as there:
        assert (await there.say("Commit."), there.outcome) == (["read"], "retried")
        first, second, third, fourth = map(there.model.body, range(4))
        assert "response_format" in second
        assert (third["tools"], fourth["tools"]) == (first["tools"], first["tools"])
        assert "response_format" not in third | fourth
        assert third["messages"][0] == first["messages"][0]
        assert "[StepEnforcementError]" in there.told(1)


async def test_a_backend_that_is_busy_at_a_constrained_attempt_is_not_asked_once_more() -> None:
    busy = whole({"error": {"message": "later"}}, 429, retry_after="7")
    async with client(STEPS, calls(COMMIT), busy, profile="llama-server") as there:
        status, _, headers = await there.proxy.post("/v1/chat/completions", STREAM | {"stream": False})
        assert (status, headers["retry-after"]) == (429, "7")
        assert len(there.model.asked) == 2


@pytest.mark.parametrize(("retries", "shown"), [(2, '"name":"read"'), (1, "[called commit: ")])
async def test_the_client_of_a_stream_does_not_hear_of_a_constrained_attempt_that_was_refused(
    retries: int, shown: str
) -> None:
    first = streamed(chunk({"reasoning_content": "Hm."}), chunk(called(*COMMIT)), chunk({}, "tool_calls"))
    third = streamed(chunk(called(*READ)), chunk({}, "tool_calls"))
    async with client(STEPS, first, REFUSED, third, profile="llama-server", retries=retries) as there:
        got = await streamed_by(there)
    assert shown in got
    assert got.count("Hm.") == 1
    assert "Failed to parse" not in got


async def test_anthropics_clients_of_such_a_backend_are_held_to_it_too_and_pictures_are_not_lost() -> None:
    made = [{"name": one["function"]["name"], "input_schema": one["function"]["parameters"]} for one in TOOLS]
    body = {"model": "m", "max_tokens": 99, "tools": made, "messages": [{"role": "user", "content": "Commit."}]}
    picture = {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:,"}}]}
    seen = {"model": "m", "tools": TOOLS, "messages": [picture]}
    script = (calls(COMMIT), whole(completion(JSON_READ)), calls(COMMIT), calls(READ))
    async with client(STEPS, *script, profile="llama-server") as there:
        _, got, _ = await there.proxy.post("/v1/messages", body)
        assert [block["name"] for block in msgspec.json.decode(got)["content"]] == ["read"]
        assert "response_format" in there.model.body(1)
        _, _, headers = await there.proxy.post("/v1/chat/completions", seen)
        assert headers["x-forge-outcome"] == "retried"
        assert there.model.body(3)["messages"][0] == picture
        assert "response_format" not in there.model.body(3)


async def test_a_constrained_attempt_of_a_stream_is_a_stream_and_the_client_sees_the_call() -> None:
    early = streamed(chunk(called(*COMMIT)), chunk({}, "tool_calls"))
    pieces = [chunk({"content": part}) for part in (JSON_READ[:9], JSON_READ[9:])]
    async with client(STEPS, early, streamed(*pieces, chunk({}, "stop")), profile="llama-server") as there:
        got = await streamed_by(there)
        assert (there.model.body(1)["stream"], "response_format" in there.model.body(1)) == (True, True)
    assert '"name":"read"' in got
    assert '"tool' not in got.replace('"tool_calls"', "")


async def test_when_every_attempt_skips_the_step_the_client_is_told_in_words_what_was_refused() -> None:
    async with client(STEPS, *[calls(COMMIT, text="Here.")] * 3) as there:
        assert (await there.say("Commit."), there.outcome) == ([], "exhausted")
        assert there.said == (
            'Here.\n[called commit: {"message":"Mend a"}]\n'
            "[refused: You cannot call commit yet. First complete: read, test. Call read now.]"
        )
        assert len(there.model.asked) == 3


async def test_a_call_in_a_text_that_the_policy_refuses_does_not_stay_there_though_it_was_only_shown() -> None:
    shown = 'It would be: <tool_call>{"name": "commit", "arguments": {"message": "Mend a"}}</tool_call>'
    policy = '[[order]]\ntool = "commit"\nafter = ["test"]'
    refused = 'It would be:\n[called commit: {"message":"Mend a"}]\n[refused: '
    for rules, said in ((policy, refused), ("", shown)):
        async with client(rules, whole(completion(shown)), whole(completion("ok"))) as there:
            assert await there.say("How would you commit?") == []
            assert there.said.startswith(said)


async def test_an_answer_in_words_is_no_answer_before_the_required_steps() -> None:
    done = whole(completion("All tests pass."))
    async with client(STEPS, done, calls(READ), *[done] * 3, calls(TEST), done) as there:
        assert (await there.say("Do the tests pass?"), there.outcome) == (["read"], "retried")
        assert (await there.went("x = 1"), there.outcome) == ([], "exhausted")
        assert there.said == "All tests pass.\n[refused: first complete test]"
        assert await there.say("Did you run them?") == ["test"]
        assert (await there.went("2 passed"), there.outcome, there.said) == ([], "clean", "All tests pass.")


@pytest.mark.parametrize(
    ("errors", "result", "counts"),
    [
        ("", "Error: no such file", False),
        ("", "the log says Error: no such file", True),
        ("[tools.read]\nerrors = []", "Error: no such file", True),
        ('[tools.read]\nerrors = ["*not found*"]', "a.py was not found.", False),
        ('[tools.test]\nerrors = ["*not found*"]', "a.py was not found.", True),
    ],
)
async def test_a_step_that_failed_is_not_done(errors: str, result: str, counts: bool) -> None:
    policy = f'required_steps = "read"\n{errors}'
    async with client(policy, calls(READ), whole(completion("Done.")), calls(READ)) as there:
        await there.say("Read a.py.")
        assert (await there.went(result) == []) is counts


async def test_what_anthropics_clients_say_of_a_result_counts() -> None:
    tools = [{"name": "read", "input_schema": TOOLS[0]["function"]["parameters"]}]
    use = {"type": "tool_use", "id": "t1", "name": "read", "input": {"path": "a.py"}}
    result = {"type": "tool_result", "tool_use_id": "t1", "content": "It is locked.", "is_error": True}
    body = {
        "model": "m",
        "max_tokens": 9,
        "tools": tools,
        "messages": [
            {"role": "user", "content": "Read a.py."},
            {"role": "assistant", "content": [use]},
            {"role": "user", "content": [result]},
        ],
    }
    async with client('required_steps = "read"', whole(completion("Done.")), calls(READ)) as there:
        _, got, _ = await there.proxy.post("/v1/messages", body)
        assert [block["type"] for block in msgspec.json.decode(got)["content"]] == ["tool_use"]


RULES = {
    "prerequisite": (
        '[tools.edit]\nprerequisites = [{ tool = "read", match_arg = "path" }]',
        [("read", '{"path":"b.py"}')],
        EDIT,
        "You cannot call edit yet. First call read with the same path; call read now.",
    ),
    "out of date": (
        (
            '[[order]]\ntool = "read"\nagain_after = [{ tool = "edit", match_arg = "path" }]\n'
            '[tools.edit]\nprerequisites = [{ tool = "read", match_arg = "path" }]'
        ),
        [("read", '{"path":"a.py"}'), ("read", '{"path":"b.py"}'), EDIT],
        EDIT,
        "You cannot call edit yet. First call read with the same path; call read now.",
    ),
    "repetition": (
        "limits.max_repeats = 2",
        [TEST, TEST],
        TEST,
        "[Repeated] test was not run: you have already made this exact call 2 times, and its result stays the same.",
    ),
    "placeholder": ("limits.max_repeats = 9", [TEST], ("read", '{"path":"<path>"}'), "[Placeholder] read was not run"),
}


@pytest.mark.parametrize("rule", RULES)
async def test_each_rule_of_a_workflow_holds_over_the_requests_of_a_session(rule: str) -> None:
    policy, before, refused, correction = RULES[rule]
    made = (calls(one, call_id=f"c{n}") for n, one in enumerate(before))
    script = (*made, calls(refused), whole(completion("Well.")))
    async with client(policy, *script) as there:
        await there.say("Go.")
        for _ in before[1:]:
            await there.went("same")
        assert (await there.went("same"), there.said, there.outcome) == ([], "Well.", "retried")
        assert correction in there.told(len(before) + 1)


async def test_a_session_may_run_so_many_calls_and_then_there_are_words() -> None:
    async with client("limits.max_tool_calls = 2", calls(READ), calls(TEST), calls(EDIT)) as there:
        await there.say("Go.")
        assert await there.went("fine") == ["test"]
        assert (await there.went("fine"), there.outcome) == ([], "exhausted")
        refusal = "[refused: the maximum of 2 calls is reached]"
        assert there.said == f'[called edit: {{"path":"a.py","text":"x"}}]\n{refusal}'
        assert len(there.model.asked) == 3


async def test_of_a_reply_with_a_refused_call_the_others_go_on_where_the_policy_says_so() -> None:
    policy = 'calls.on_violation = "block_call"\n' + STEPS
    async with client(policy, calls(READ, COMMIT)) as there:
        assert (await there.say("Go."), there.outcome) == (["read"], "repaired")


@pytest.mark.parametrize(("scope", "calls_again"), [("session", []), ("answer", ["read"])])
async def test_the_steps_are_those_of_the_session_or_since_the_last_answer(scope: str, calls_again: list[str]) -> None:
    policy = f'required_steps = "read"\nscope = "{scope}"'
    answer = whole(completion("It is 1."))
    async with client(policy, calls(READ), answer, answer, calls(READ)) as there:
        await there.say("What is x?")
        assert await there.went("x = 1") == []
        assert await there.say("And now?") == calls_again


async def test_words_that_are_no_answer_are_not_streamed_and_what_follows_is() -> None:
    pieces = ({"reasoning_content": "Hm."}, {"content": "All tests"}, {"content": " pass."})
    words = streamed(*map(chunk, pieces), chunk({}, "stop"))
    call = streamed(chunk(called(*READ)), chunk({}, "tool_calls"))
    async with client('required_steps = "read"', words, call) as there:
        got = await streamed_by(there)
    assert "All tests" not in got
    assert "Hm." in got
    assert '"name":"read"' in got


async def test_a_rule_for_a_tool_that_a_request_does_not_offer_is_not_applied_and_that_is_said_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    policy = """
required_steps = ["Read", "read"]
[tools.edit]
prerequisites = ["Read", "read", { tool = "test", match_arg = "path" }]
"""
    async with client(policy, calls(EDIT), calls(READ), calls(EDIT)) as there:
        with caplog.at_level(logging.WARNING, "forge.proxy"):
            assert await there.say("Go.") == ["read"]
            assert await there.went("x = 1") == ["edit"]
    told = [record.getMessage() for record in caplog.records if record.name == "forge.proxy"]
    assert told == [
        "the policy names Read, which a request does not offer: not enforced there. Did you mean read?",
        "the policy names the argument path of test, which a request does not offer: not enforced there.",
    ]


async def test_a_policy_is_that_of_the_model_that_was_asked_for() -> None:
    policy = '[model."small*"]\nrequired_steps = "read"'
    hello = whole(completion("Hi."))
    async with client(policy, hello, calls(READ), model="Small-1b") as there:
        assert await there.say("Hello.") == ["read"]
    async with client(policy, hello, model="large") as there:
        assert await there.say("Hello.") == []


async def test_what_compaction_cuts_for_the_backend_still_counts() -> None:
    policy = """
required_steps = "read"
context_tokens = 1500
[tools.commit]
grounded = "message"
"""
    script = (calls(READ), *[calls(TEST, call_id=f"t{n}") for n in range(8)], calls(COMMIT), whole(completion("Done.")))
    async with client(policy, *script) as there:
        await there.say("Go.")
        await there.went("Mend a")
        for _ in range(7):
            assert await there.went("a line of words\n" * 60) == ["test"]
        assert await there.went("a line of words\n" * 60) == ["commit"]
        assert (await there.went("fine"), there.said, there.outcome) == ([], "Done.", "clean")
        results = [m["content"] for m in there.model.body(10)["messages"] if m["role"] == "tool"]
        assert "Mend a" not in results
        assert len(results) < 10


ODD = [
    True,
    {},
    {"type": "object", "properties": None},
    {"type": "object", "properties": {"path": True}, "required": None},
    {"properties": {"path": [1]}, "required": "path"},
    {"properties": {"path": {"type": "string", "enum": 3}}, "required": [1]},
]
"""What clients may send as the schema of a tool."""

ODD_HISTORIES = [
    [{"role": "tool", "tool_call_id": "x", "content": "nobody asked"}],
    [
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "x", "function": {"name": "edit", "arguments": "[1"}}],
        }
    ],
    [
        {"role": "assistant", "tool_calls": [{"id": "", "function": {"name": "edit", "arguments": "\ud800"}}] * 3},
        {"role": "tool", "tool_call_id": "", "content": '{"path": "<path>"}'},
    ],
]


@pytest.mark.parametrize(("schema", "history"), [*zip(ODD, 2 * ODD_HISTORIES, strict=True)])
@pytest.mark.parametrize("profile", [None, "llama-server"])
async def test_whatever_clients_send_a_request_under_a_policy_gets_an_answer(
    schema: object, history: list[object], profile: str | None
) -> None:
    policy = """
required_steps = "read"
limits.max_repeats = 1
[tools.edit]
prerequisites = [{ tool = "read", match_arg = "path" }]
grounded = { path = "read" }
"""
    made = [{"type": "function", "function": {"name": name, "parameters": schema}} for name in ("read", "edit")]
    body = {"model": "m", "messages": [{"role": "user", "content": "Go."}, *history], "tools": made}
    script = (calls(EDIT), calls(("edit", '{"path":["<path>"],"x":{}}')), calls(READ))
    async with client(policy, *script, profile=profile) as there:
        assert (await there.proxy.post("/v1/chat/completions", json.dumps(body).encode()))[0] in (200, 400)
