"""The doctor, on real server processes of many characters: each is diagnosed in a sentence that says what to do."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from forge.backends.doctor import PROBES, Probe, Visit, choose, consult, known, profile_of, reason
from forge.backends.doctor.examination import examine
from forge.backends.doctor.facts import MODELS, Facts, Finding, ProbeRequest
from forge.backends.doctor.probes import REPLY
from forge.backends.profile import from_toml, named_profile
from forge.backends.questions import ServerAnswer
from forge.cli import main
from forge.errors import ForgeError
from tests.patients import patients


@pytest.fixture(scope="module")
def ward() -> Iterator[str]:
    with patients() as url:
        yield url


def visited(url: str, model: str = "", timeout: float = 20.0) -> Visit:
    async def go() -> Visit:
        async with httpx.AsyncClient() as client:
            return await consult(client, url, model, seconds=timeout)

    return asyncio.run(go())


def told(visit: Visit, topic: str) -> Finding:
    return next(finding for finding in visit.findings if finding.topic == topic)


def test_llama_cpp_whose_calls_come_as_text_is_seen_through(ward: str) -> None:
    """The recorded case: native calls look supported, and nothing about them holds."""
    visit = visited(f"{ward}/llama/v1")
    facts = visit.facts
    assert (facts.kind, facts.about.build, facts.context.tokens, facts.about.slots) == (
        "llama-server",
        "b1-7e4c0a9",
        4096,
        1,
    )
    assert facts.calls == "text"
    assert "of the family `fenced`" in told(visit, "tool calls").came
    assert (facts.required, facts.named, facts.enforced) == (False, False, {"json_schema": True})
    assert told(visit, "prompt over the context").verdict == "yes"
    assert "exceeds the available context size" in told(visit, "prompt over the context").came
    assert profile_of(visit).mode == "constrained"


def test_a_server_that_does_everything(ward: str) -> None:
    visit = visited(f"{ward}/native/v1")
    facts = visit.facts
    assert (facts.kind, facts.about.build, facts.context.source) == ("vllm", "0.11.0", "max_model_len of /v1/models")
    assert (facts.calls, facts.valid_arguments) == ("native", True)
    assert (facts.required, facts.named, facts.enforced) == (True, True, {"json_schema": True})
    assert (facts.tokenizer, profile_of(visit).tokenizer) == ("messages", "messages")
    assert "counts the first prompt exactly" in told(visit, "tokenizer").does


def test_max_is_not_vllm_although_it_has_its_version_and_its_context_field(ward: str) -> None:
    """Recorded: MAX 26.6.0 without --enable-structured-output, which it has on no CPU."""
    visit = visited(f"{ward}/max/v1")
    facts = visit.facts
    assert (facts.kind, facts.context.tokens) == ("openai-compatible", 2048)
    assert (facts.calls, facts.required, facts.named) == ("text", False, False)
    assert facts.enforced == {"json_schema": False, "strict": False, "json_object": False}
    assert told(visit, "prompt over the context").verdict == "yes"
    assert "requires --enable-structured-output" in told(visit, "JSON Schema").came
    assert profile_of(visit).mode == "prompted"


def test_transformers_serve_passes_over_what_it_does_not_do(ward: str) -> None:
    """Recorded: transformers 5.23.0, whose refusals are FastAPI's."""
    visit = visited(f"{ward}/transformers/v1")
    facts = visit.facts
    assert (facts.kind, facts.context.tokens, facts.tokenizer) == ("openai-compatible", None, False)
    assert (facts.calls, facts.required, facts.named) == ("text", False, False)
    assert not facts.constrains
    assert profile_of(visit).mode == "prompted"


CASES = [
    # who, what about them is found, what its finding says, the mode that follows
    (
        "unbound",
        {"calls": "native", "constrains": False, "required": True},
        ("JSON Schema", "accepted and ignored"),
        "native",
    ),
    ("deaf", {"calls": "ignored", "constrains": False}, ("tool calls", "it silently ignores `tools`"), "prompted"),
    (
        "strict",
        {"calls": "refused", "enforced": {"json_schema": False, "strict": True}},
        ("tool calls", "refuses requests"),
        "constrained",
    ),
    (
        "liar",
        {"calls": "native", "valid_arguments": False},
        ("tool calls", "that its schema does not allow"),
        "prompted",
    ),
    ("fussy", {"alternating": True}, ("two messages in a row", "wants user and assistant to take turns"), "prompted"),
    (
        "objects",
        {"enforced": {"json_schema": False, "strict": False, "json_object": True}, "logprobs": True},
        ("json_object with a schema", "enforced: the model could not have guessed this"),
        "constrained",
    ),
    ("deaf", {"logprobs": False}, ("log-probabilities", "how sure a call is cannot be known"), "prompted"),
    ("thinker", {"thinks": True, "constrains": True}, ("JSON Schema", "enforced"), "constrained"),
    ("ollama", {"kind": "ollama", "enforced": {"format": True}}, ("JSON Schema", "enforced"), "constrained"),
    ("studio", {"kind": "lm-studio"}, ("context", "loaded_context_length"), "prompted"),
    ("loading", {"fatal": ""}, ("reply", "tokens"), "prompted"),
]


@pytest.mark.parametrize(("who", "facts", "says", "mode"), CASES, ids=[f"{case[0]}-{case[2][0]}" for case in CASES])
def test_each_character_is_found_out(
    ward: str, who: str, facts: dict[str, object], says: tuple[str, str], mode: str
) -> None:
    visit = visited(f"{ward}/{who}/v1")
    assert {name: getattr(visit.facts, name) for name in facts} == facts
    topic, words = says
    finding = told(visit, topic)
    assert words in f"{finding.came} {finding.means}"
    assert finding.asked
    profile = profile_of(visit)
    assert profile.mode == mode
    assert mode in reason(visit.facts, profile)


@pytest.mark.parametrize(
    ("who", "says"),
    [
        ("page", "that address is of a web page, no API: give the API's own"),
        ("moved", "it sends to another address (https://elsewhere.example/v1): give that one"),
        ("locked", "name the environment variable that holds it with --api-key-env"),
        ("garbled", "its answer is not a chat completion"),
        ("quota", "it refuses a plain question (status 422: n: 1 is too much)"),
    ],
)
def test_what_cannot_be_used_is_said_with_what_to_do(ward: str, who: str, says: str) -> None:
    visit = visited(f"{ward}/{who}/v1")
    assert says in visit.facts.fatal
    assert visit.findings[-1].verdict == "no"


def test_an_unknown_model_is_told_with_those_that_there_are(ward: str) -> None:
    visit = visited(f"{ward}/strangers/v1", "other")
    assert "it does not know the model 'other': it has one, two; choose with --model" in visit.facts.fatal


def test_one_that_hangs_is_left_after_two_questions(ward: str) -> None:
    visit = visited(f"{ward}/silent/v1", timeout=0.4)
    assert "it stopped answering" in visit.facts.fatal
    assert "chat/completions" in told(visit, "two messages in a row").came
    assert int(httpx.get(f"{ward}/silent/count").text) <= 6 + 2


def test_the_number_of_requests_is_bounded(ward: str) -> None:
    visited(f"{ward}/unbound/v1")
    before = int(httpx.get(f"{ward}/unbound/count").text)
    visited(f"{ward}/unbound/v1")
    assert int(httpx.get(f"{ward}/unbound/count").text) - before - 1 <= 6 + len(PROBES)


ANSWERS = st.builds(
    ServerAnswer,
    status=st.sampled_from([200, 204, 302, 400, 401, 404, 429, 500, 503, 599]),
    body=st.one_of(
        st.binary(max_size=200),
        st.sampled_from(
            [b"[", b"null", b"{}", b'{"choices":[]}', b'{"error":"x"}', b'{"error":{"message":7}}', b"[" * 9000]
        ),
        st.recursive(
            st.one_of(st.none(), st.integers(), st.text(max_size=9)),
            lambda inner: (
                st.lists(inner, max_size=3)
                | st.dictionaries(
                    st.sampled_from(
                        ["choices", "message", "content", "tool_calls", "data", "id", "error", "tokens", "usage"]
                    ),
                    inner,
                    max_size=4,
                )
            ),
        ).map(lambda value: json.dumps(value).encode()),
    ),
)


BEFORE = [Facts(), Facts(kind="ollama", thinks=True), Facts(kind="llama-server", prompt_tokens=3)]


@given(ANSWERS, st.sampled_from([MODELS, *PROBES]), st.sampled_from(BEFORE))
def test_no_answer_is_too_strange_to_be_read(answer: ServerAnswer, probe: Probe, before: Facts) -> None:
    """Whatever a server sends, a probe reads it to facts, from which there is a profile."""
    facts, _ = probe.read(before, answer)
    assert choose(facts, named_profile(facts.kind)).name == facts.kind


@pytest.mark.parametrize(
    ("facts", "mode", "constrain"),
    [
        (Facts(enforced={"json_schema": True}, calls="native", valid_arguments=True), "constrained", "json_schema"),
        (Facts(enforced={"json_schema": False, "strict": True}, calls="text"), "constrained", "strict"),
        (Facts(enforced={"json_schema": False, "strict": False, "json_object": True}), "constrained", "json_object"),
        (Facts(enforced={"json_schema": False}, calls="native", valid_arguments=True), "native", "none"),
        (Facts(enforced={"json_schema": False}, calls="native", valid_arguments=False), "prompted", "none"),
        (Facts(enforced={"json_schema": False}, calls="unused"), "prompted", "none"),
        (Facts(kind="ollama", enforced={"format": True}, calls="refused"), "constrained", "format"),
        (Facts(kind="ollama", enforced={"format": False}, calls="refused"), "prompted", "none"),
        (
            Facts(kind="llama-server", enforced={"json_schema": False}, calls="native", valid_arguments=True),
            "native",
            "none",
        ),
        # What was not asked stays as it is known of the kind.
        (Facts(kind="llama-server"), "constrained", "json_schema"),
        (Facts(kind="vllm", calls="native", valid_arguments=True), "constrained", "json_schema"),
        (Facts(kind="openai"), "native", "strict"),
        (Facts(kind="openai", enforced={"strict": True}), "constrained", "strict"),
        (Facts(kind="openai", enforced={"strict": False}, calls="native", valid_arguments=True), "native", "none"),
        (Facts(), "native", "none"),
    ],
)
def test_the_strongest_mode_that_is_enforced_is_chosen(facts: Facts, mode: str, constrain: str) -> None:
    chosen = choose(facts, named_profile(facts.kind))
    assert (chosen.mode, chosen.constrain) == (mode, constrain)


def told_by(output: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    """What `forge doctor` gives in this process: its exit code, standard output and standard error."""
    try:
        code = main(["doctor", *arguments])
    except SystemExit as left:
        code = int(left.code or 0)
    return (code, *output.readouterr())


def test_the_command_prints_what_it_found_and_a_profile_that_can_be_used(
    ward: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "mine.toml"
    code, printed, problem = told_by(capsys, f"{ward}/unbound/v1", "--write", str(file))
    assert (code, problem) == (0, "")
    assert "short requests to the model" in printed.splitlines()[0]
    assert "mode native: no schema is enforced" in printed
    profile = from_toml(file.read_text())
    assert (profile.url, profile.mode) == (f"{ward}/unbound/v1", "native")
    assert file.read_text().strip() in printed


def test_the_profile_of_an_ollama_is_for_its_own_protocol(
    ward: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert told_by(capsys, f"{ward}/ollama/v1", "--write", str(tmp_path / "o.toml"))[0] == 0
    profile = from_toml((tmp_path / "o.toml").read_text())
    assert (profile.url, profile.wire, profile.constrain) == (f"{ward}/ollama", "ollama", "format")


def test_json_is_for_programs(ward: str, capsys: pytest.CaptureFixture[str]) -> None:
    found = json.loads(told_by(capsys, f"{ward}/deaf/v1", "--json")[1])
    assert (found["usable"], found["profile"]["mode"]) == (True, "prompted")
    assert {"topic", "verdict", "asked", "came", "means", "does"} == found["findings"][0].keys()


def test_exit_codes(ward: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert told_by(capsys, f"{ward}/locked/v1")[0] == 1
    nowhere = str(tmp_path / "no" / "x.toml")
    server = f"{ward}/deaf/v1"
    for wrong in (
        ["nonsense"],
        [server, "--write", nowhere],
        [server, "--write", str(tmp_path)],
        [server, "--timeout", "0"],
    ):
        code, said, problem = told_by(capsys, *wrong)
        assert (code, said) == (2, "")
        assert problem


def test_why_no_server_is_there_is_said_once(capsys: pytest.CaptureFixture[str]) -> None:
    code, said, _ = told_by(capsys, "http://127.0.0.1:1")
    assert (code, said.count("Connection refused"), said.splitlines()[-1]) == (1, 1, "not usable")


def test_a_key_is_shown_nowhere(ward: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """This server repeats the credentials in its errors, as some do."""
    monkeypatch.setenv("DOOR", "sk-verysecret")
    code, said, problem = told_by(capsys, f"{ward}/leaky/v1", "--json", "--api-key-env", "DOOR")
    assert code == 1
    assert "has spent its quota" in said
    assert "verysecret" not in said + problem


def test_openai_is_asked_with_the_names_that_it_has() -> None:
    question = REPLY.ask(known("https://api.openai.com/v1", "gpt-x"))
    assert isinstance(question, ProbeRequest)
    assert question.body is not None
    body = json.loads(question.body)
    assert (body["max_completion_tokens"], body["model"]) == (8, "gpt-x")
    assert not body.keys() & {"max_tokens", "temperature"}


def test_anthropic_is_another_protocol() -> None:
    with pytest.raises(ForgeError, match="run with anthropic:MODEL"):
        known("https://api.anthropic.com", "")


def test_questions_that_make_no_sense_are_not_asked() -> None:
    skipped = [p.topic for p in PROBES if not isinstance(p.ask(Facts(kind="ollama", calls="ignored")), ProbeRequest)]
    assert "tool_choice required" in skipped
    assert "strict JSON Schema" in skipped


def test_nothing_more_is_asked_once_it_cannot_be_used() -> None:
    async def go() -> Visit:
        async with httpx.AsyncClient() as client:
            return await examine(client, "http://127.0.0.1:9/v1", PROBES, Facts(fatal="it is closed"))

    assert asyncio.run(go()).findings == ()
