"""Options of every public entry: a value of another type or out of its range is told by name, before anything runs."""

# mypy: disable-error-code="arg-type, dict-item, call-overload, var-annotated, attr-defined"
# What it is about are values of the wrong type.

import asyncio
import inspect
from collections.abc import Callable
from functools import partial
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

from forge import (
    Conversation,
    Each,
    Limits,
    Prerequisite,
    Summarize,
    TieredCompact,
    Workflow,
    follow,
    replay,
    resume,
    run,
    run_or_raise,
    run_sync,
    stream,
    tool,
)
from forge.agent import file_tools
from forge.backends import Anthropic, Launch, Server, ServerManager
from forge.errors import DefinitionError, ForgeError
from forge.guardrails import ErrorTracker, ResponseValidator, StepEnforcer
from forge.interpreters.scripted import Scripted, call
from forge.journal import states
from forge.proxy.policy import ModelPolicy, Policy, PolicyLimits
from stages import compact, enforce, validate
from stages.compaction import ContextBudget
from stages.effect import Budget
from stages.guards import repetition, required_steps
from stages.message import User
from stages.options import OptionError, unfit_function
from stages.order import Use
from stages.rules import Calls, Rules
from stages.saved import load, save
from stages.state import State
from tests.flows import Desk

FLOW = Desk().workflow
STATE = State(history=(User(text="Go."),))
LOCAL = "local"
Entry = Callable[..., object]

RUNNING: list[tuple[dict[str, object], str]] = [
    ({"message": None}, "message is None; it must be a string"),
    ({"message": 3}, "message is 3; it must be a string"),
    ({"workflow": None}, "workflow is None; it must be a Workflow"),
    ({"backend": None}, "backend is None; it must be one of forge.backends, a server's address"),
    ({"prompt_vars": {"a": 3}}, "prompt_vars['a'] is 3; it must be a string"),
    (
        {"initial_messages": "a"},
        "initial_messages is 'a'; it must be a list, each value a System, a User, an Assistant or a",
    ),
    ({"initial_messages": [{"role": "user"}]}, "initial_messages[0] is {'role': 'user'}; it must be a System"),
    ({"on_event": 3}, "on_event is 3; it must be a function or None"),
    ({"cancel": True}, "cancel is True; it must be an Event or None"),
    ({"ask": "yes"}, "ask is 'yes'; it must be a function or None"),
    ({"on_event": asyncio.sleep}, "on_event: sleep is async, but it is called without await; define it with `def`"),
    ({"on_event": lambda: None}, "on_event: <lambda> cannot be called as <lambda>(Stamped): too many positional"),
    ({"on_message": lambda message, more: None}, "on_message: <lambda> cannot be called as <lambda>(…): missing a"),
    ({"ask": lambda: None}, "ask: <lambda> cannot be called as <lambda>(Ask): too many positional arguments"),
    ({"hear": lambda state: ()}, "hear: <lambda> cannot be called as <lambda>(): missing a required argument"),
    ({"journal": 3}, "journal is 3; it must be a string, a PathLike or None"),
    ({"sampling": {"temperature": 0}}, "sampling is {'temperature': 0}; it must be a Sampling or None"),
]


@pytest.mark.parametrize(
    ("entry", "given", "wrong", "meant"),
    [
        (Server, ("http://x",), "contxt_tokens", "context_tokens"),
        (Anthropic, ("m",), "timout", "timeout"),
        (ServerManager, (Launch(model="m", program="vllm"),), "api_keys", "api_key"),
        (Scripted, ([],), "modes", "mode"),
        (Use, (), "atmost", "at_most"),
        (Launch, (), "contxt_tokens", "context_tokens"),
        (ModelPolicy, (), "required_stps", "required_steps"),
        (ErrorTracker, (), "max_retry", "max_retries"),
        (file_tools, (".",), "shown_char", "shown_chars"),
        (run_sync, (FLOW, "Go."), "on_evnt", "on_event"),
        (lambda *given, **more: asyncio.run(run(*given, **more)), (FLOW, "Go."), "sampeling", "sampling"),
    ],
)
def test_a_misspelt_keyword_is_told_with_the_right_ones(
    entry: Entry, given: tuple[object, ...], wrong: str, meant: str
) -> None:
    with pytest.raises(TypeError, match=rf"there is no option '{wrong}'\. Did you mean {meant}\? There are: "):
        entry(*given, **{wrong: 1})


def test_several_unknown_keywords_are_told_with_one_list_of_the_right_ones() -> None:
    with pytest.raises(TypeError) as refused:
        Desk(temperature=1, model="m", max_iterations=5)
    said = str(refused.value)
    assert said.count("There are: name, tools, terminal_tool") == 1
    assert said.startswith("write limits=Limits(max_iterations=5)\nthere is no option 'temperature'. There are: ")
    assert said.endswith("\nthere is no option 'model'")


def streamed(**options: object) -> object:
    async def read() -> list[object]:
        return [event async for event in stream(**options)]

    return asyncio.run(read())


EVERY_WAY: list[Entry] = [run_or_raise, lambda **given: asyncio.run(run(**given)), streamed]


@pytest.mark.parametrize(
    ("entry", "options", "says"),
    [*((run_sync, *row) for row in RUNNING), *((entry, *RUNNING[0]) for entry in EVERY_WAY)],
)
def test_every_way_to_run_names_the_wrong_option(entry: Entry, options: dict[str, object], says: str) -> None:
    with pytest.raises(DefinitionError) as refused:
        entry(**{"workflow": FLOW, "message": "Go.", "backend": Scripted([]), **options})
    assert refused.value.problems[0].startswith(says)
    assert isinstance(refused.value, ForgeError | ValueError)


@pytest.mark.parametrize(
    ("entry", "says"),
    [
        (lambda: asyncio.run(resume(FLOW, None, backend=LOCAL)), "state is None; it must be a State"),
        (lambda: asyncio.run(resume(FLOW, STATE, backend=LOCAL, budget=3)), "budget is 3; it must be a Budget or None"),
        (lambda: asyncio.run(follow(FLOW, STATE, None, backend=LOCAL)), "message is None; it must be a string"),
        (lambda: replay(None, FLOW), "journal is None; it must be a string, a PathLike or a Journal"),
        (lambda: states("x", "flow.py"), "workflow is 'flow.py'; it must be a Workflow"),
        (lambda: Conversation(None, backend=LOCAL), "workflow is None; it must be a Workflow"),
        (lambda: Conversation(FLOW, backend=LOCAL).say_sync(None), "message is None; it must be a string"),
        (lambda: Server(None), "url is None; it must be a string"),
        (
            lambda: Server("http://x", context_tokens="8k"),
            "context_tokens is '8k'; it must be a whole number, at least 1 or None",
        ),
        (lambda: Workflow(None, tools=[], on_text="accept"), "name is None; it must be a string"),
        (lambda: tool("look"), "tool takes a function, not 'look'"),
        (lambda: tool(effect="read")(tool(slow)), "slow is a tool already; give its options where it is made"),
        (lambda: Workflow("w", tools=[tool(name="a b")(slow)]), "tool 'a b': a name is a letter, then letters, digits"),
        (lambda: Budget(calls="5"), "Budget: calls is '5'; it must be a whole number"),
        (lambda: Budget(seconds=float("nan")), "Budget: seconds is nan; it must be a number or None"),
        (lambda: ContextBudget(tokens=-1), "ContextBudget: tokens is -1; it must be a whole number, at least 0"),
        (lambda: TieredCompact(phase_thresholds=(0.5, 0.7)), "TieredCompact: phase_thresholds is (0.5, 0.7); it must"),
        (lambda: Rules(tools=None), "Rules: tools is None; it must be a list, each value a ToolSpec"),
        (
            lambda: Calls(batch="frist"),
            "Calls: batch is 'frist'; it must be one of auto, all, first, indep",
        ),
        (lambda: Summarize(words=0), "Summarize: words is 0; it must be a whole number, at least 1"),
        (lambda: Each(tool=3, argument="id"), "Each: tool is 3; it must be a string"),
        (lambda: Prerequisite(tool=None), "Prerequisite: tool is None; it must be a string"),
        (lambda: ErrorTracker(max_retries=-1), "max_retries is -1; it must be a whole number, at least 0"),
        (lambda: StepEnforcer("look", ["end"]), "required_steps is 'look'; it must be a list of strings"),
        (lambda: ResponseValidator([slow], rescue_enabled=1), "rescue_enabled is 1; it must be True or False"),
        (lambda: file_tools(".", timeout=0), "timeout is 0; it must be a number, over 0"),
        (lambda: ModelPolicy(overflow="x"), "ModelPolicy: overflow is 'x'; it must be one of compact, refuse or None"),
        (lambda: ModelPolicy(limits=Limits()), "ModelPolicy: limits is Limits("),
        (lambda: PolicyLimits(max_repeats=-3), "PolicyLimits: max_repeats is -3; it must be a whole number, at least"),
        (
            lambda: Policy(ModelPolicy(terminal_tool="a", required_steps="a")),
            "Policy: a: a terminal tool cannot be a required step",
        ),
        (lambda: enforce(3), "guards[0] is 3; it must be a function"),
        (
            lambda: enforce(required_steps),
            "guards[0]: required_steps makes a function; call it, as in required_steps(…)",
        ),
        (
            lambda: Desk(guards=[repetition]).workflow,
            "guards[0]: repetition makes a function; call it, as in repetition(",
        ),
        (lambda: save(FLOW), "state is Workflow("),
        (lambda: load(FLOW), "saved is Workflow("),
        (lambda: Scripted([3]), "script[0] is 3; it must be a string, a Reply or a Fault"),  # type: ignore[list-item]  # wrong on purpose
        (lambda: run_sync(slow, "Go.", backend=LOCAL), "workflow is <function slow at "),
        (lambda: run_sync(FLOW, "Go.", backend=Scripted), "backend is the class Scripted; write Scripted()"),
        (lambda: compact(TieredCompact, ContextBudget(tokens=1)), "compactor is the class TieredCompact; write Tiered"),
        (lambda: validate(None), "rules is None; it must be a Rules"),
    ],
)
def test_every_public_entry_says_which_option_what_was_given_and_what_is_expected(
    entry: Callable[[], object], says: str
) -> None:
    with pytest.raises((DefinitionError, OptionError)) as refused:
        entry()
    assert any(sentence.startswith(says) for sentence in refused.value.problems), refused.value.problems
    assert "on_event" not in str(refused.value)  # which any function would fit


def test_all_that_is_wrong_is_said_at_once() -> None:
    with pytest.raises(DefinitionError) as refused:
        run_sync(None, None, backend=None, on_event=3)
    assert [problem.split()[0] for problem in refused.value.problems] == ["workflow", "message", "backend", "on_event"]


def test_what_is_right_passes_in_every_form_that_it_may_have(tmp_path: Path) -> None:
    script = [call("look", what="a"), call("finish", result="ok")]
    nothing = {"on_event": None, "cancel": None, "ask": None, "redact": None, "sampling": None, "on_chunk": None}
    ended = run_sync(FLOW, "Go.", backend=Scripted(script), journal=tmp_path / "run", initial_messages=[], **nothing)
    assert ended.unwrap().value == "ok"
    assert replay(str(tmp_path / "run"), FLOW) == replay(tmp_path / "run", FLOW) == ended


def test_a_checked_struct_stays_one_that_is_replaced_saved_and_read() -> None:
    spent = replace(Budget(calls=1), calls=-1)
    assert msgspec.json.decode(msgspec.json.encode(spent), type=Budget) == spent
    with pytest.raises(msgspec.ValidationError):
        msgspec.json.decode(b'{"tokens": -1}', type=ContextBudget)


def test_the_functions_are_still_what_they_were() -> None:
    assert inspect.iscoroutinefunction(run)
    assert run.__name__ == "run"
    assert run.__doc__ is not None
    assert run.__doc__.startswith("Run the workflow")


# --- Functions of users that cannot be asked as forge asks them are told in a sentence, before they are called


async def slow(state: object, calls: object) -> None: ...


class Slow:
    async def __call__(self, state: object, calls: object) -> None: ...


def one(calls: object) -> None: ...


def three(state: object, calls: object, more: object) -> None: ...


def named(state: object, calls: object, *, strict: bool) -> None: ...


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (slow, "slow is async, but it is called without await; define it with `def`"),
        (Slow(), "Slow is async, but"),
        (one, "one cannot be called as one(state, calls): too many positional arguments"),
        (named, "named cannot be called as named(state, calls): missing a required "),
        (repetition, "repetition makes a function; call it, as in repetition(…)"),
        (partial(one, None), "partial cannot be called as partial(state, calls): too many"),
    ],
)
def test_what_cannot_be_asked(given: Callable[..., object], says: str) -> None:
    assert (unfit_function(given, "state", "calls") or "").startswith(says)


@pytest.mark.parametrize("given", [lambda state, calls: [], lambda *_: [], partial(three, more=1), max])
def test_what_can(given: Callable[..., object]) -> None:
    assert unfit_function(given, "state", "calls") is None
