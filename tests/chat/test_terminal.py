"""`forge chat` in a terminal, as a person meets it: a real process in a pseudo-terminal, a scripted model."""

import asyncio
import os
import resource
import signal
from pathlib import Path

import pytest

from tests.chat.person import ALT_ENTER, CTRL_C, CTRL_D, CTRL_U, ENTER, UP, Person, chatting
from tests.scripted_model import DONE, Line, ScriptedModel, called, chunk, hanging, sse, streamed

AGENT = '''
import os
from forge import Agent, tool

@tool(approval=True)
def pay(amount: int) -> str:
    """Pay."""
    return f"paid {amount}"

@tool(effect="read")
def wait(what: str):
    """Wait for what is written into the pipe."""
    yield "half way"
    with open("pipe") as pipe:
        yield pipe.read()

agent = Agent("till", backend=os.environ["MODEL"], tools=[pay, wait], instructions="You pay.")
'''


TILL = """
from forge import Workflow

till = Workflow("till", tools=[pay], terminal_tool="pay", system_prompt="Pay.")
"""


def words(*parts: str, **gates: asyncio.Event) -> Line:
    """A streamed reply in words."""
    return streamed(*(chunk({"content": part}) for part in parts), chunk({}, "stop"), DONE, breaks=False, **gates)


def calling(name: str, arguments: str) -> Line:
    """A streamed reply with a call."""
    return streamed(chunk(called(name, arguments)), chunk({}, "tool_calls"), DONE)


async def say(person: Person, text: str) -> None:
    """Type the message; it stands above the line then."""
    person.types(text, ENTER)
    await person.sees(f"> {text}")


async def ends(person: Person) -> None:
    person.types(CTRL_D)
    assert await person.code() == 0


async def test_an_answer_is_seen_while_it_comes_and_stands_in_the_end_and_the_next_session_knows_of_it(
    tmp_path: Path,
) -> None:
    gate = asyncio.Event()
    (tmp_path / "AGENTS.md").write_text("Answer in French.")
    async with ScriptedModel(words("My name", " is **Ada**.", gate1=gate), words("You asked for it.")) as model:
        async with chatting(tmp_path, "--no-tools", "--backend", model.url) as person:
            await person.sees("tiny")
            await person.sees("AGENTS.md, 17 characters")
            await say(person, "Who are you?")
            await person.sees("My name")
            await person.sees("answering")
            gate.set()
            await person.sees("My name is Ada.")
            await ends(person)
        async with chatting(tmp_path, "--no-tools", "--backend", model.url, "--resume") as person:
            await person.sees("after 1 message of yours")
            await person.sees("> Who are you?")
            await person.sees("My name is Ada.")
            await say(person, "What did I ask?")
            await person.sees("You asked for it.")
            await ends(person)
        assert b"Answer in French." in model.asked[0]
        assert b"My name is **Ada**." in model.asked[1]
    assert "\x1b[1mAda" in person.raw


async def test_a_full_disk_is_told_and_the_chat_goes_on(tmp_path: Path) -> None:
    async with (
        ScriptedModel(words("Still here.")) as model,
        chatting(tmp_path, "--no-tools", "--backend", model.url) as person,
    ):
        await person.sees("tiny")
        before = resource.prlimit(person.process.pid, resource.RLIMIT_FSIZE)
        resource.prlimit(person.process.pid, resource.RLIMIT_FSIZE, (0, before[1]))
        await say(person, "Are you there?")
        await person.sees("halted")
        resource.prlimit(person.process.pid, resource.RLIMIT_FSIZE, before)
        await say(person, "And now?")
        await person.sees("Still here.")
        await ends(person)
    assert "Free some space" in " ".join(person.seen.split())


async def test_a_person_approves_refuses_edits_and_allows_for_good(tmp_path: Path) -> None:
    (tmp_path / "till.py").write_text(AGENT)
    five, done = calling("pay", '{"amount":5}'), words("Done.")
    script = (five, done, calling("pay", '{"amount":6}'), done, calling("pay", '{"amount":7}'), done)
    more = (calling("pay", '{"amount":8}'), done)
    async with (
        ScriptedModel(*script, *more) as model,
        chatting(tmp_path, "till.py:agent", MODEL=f"{model.url}") as person,
    ):
        await say(person, "Pay 5.")
        await person.sees('"amount": 5')
        await person.sees("[y] yes")
        person.types("Not today.", ENTER)
        await person.sees("the user said no: Not today.")
        await person.sees("Done.")
        await say(person, "Pay 6.")
        await person.sees("[y] yes")
        person.types("e", ENTER)
        await person.sees("line is a no")
        person.types(CTRL_U, '{"amount": 4}', ENTER)
        await person.sees('by you with {"amount":4}')
        await person.sees("paid 4")
        await person.sees("Done.")
        await say(person, "Pay 7.")
        await person.sees("[y] yes")
        person.types("a", ENTER)
        await person.sees("paid 7")
        await say(person, "Pay 8.")
        await person.sees("always in this session")
        await person.sees("paid 8")
        await person.sees("Done.")
        await ends(person)
    assert b"Not today." in model.asked[1]


async def test_ctrl_c_cancels_the_turn_keeps_the_session_and_ends_it_when_it_comes_twice(tmp_path: Path) -> None:
    async with (
        ScriptedModel(hanging(sse(chunk({"content": "Once upon"}))), words("Of course.")) as model,
        chatting(tmp_path, "--no-tools", "--backend", model.url) as person,
    ):
        await say(person, "A long story!")
        await person.sees("Once upon")
        person.types(CTRL_C)
        await person.sees("cancelled")
        await model.left.wait()
        await say(person, "A short one?")
        await person.sees("Of course.")
        person.types("half a message", CTRL_C)
        person.types(CTRL_C)
        await person.sees("Ctrl-C again")
        person.types(CTRL_C)
        assert await person.code() == 0
    assert b"A long story!" in model.asked[1]
    assert b"half a message" not in b"".join(model.asked)


async def test_what_is_typed_while_the_agent_works_is_read_with_the_next_results(tmp_path: Path) -> None:
    (tmp_path / "till.py").write_text(AGENT)
    os.mkfifo(tmp_path / "pipe")
    async with (
        ScriptedModel(calling("wait", '{"what":"rain"}'), words("In euros, then.")) as model,
        chatting(tmp_path, "till.py:agent", MODEL=model.url) as person,
    ):
        await say(person, "What does it cost?")
        await person.sees("half way")
        await say(person, "/undo")
        await person.sees("the agent is working")
        await say(person, "In euros, please.")
        await person.sees("noted")
        await asyncio.to_thread((tmp_path / "pipe").write_text, "12")
        await person.sees("heard")
        await person.sees("In euros, then.")
        await ends(person)
    assert b"In euros, please." in model.asked[1]


async def test_the_commands_do_what_they_say(tmp_path: Path) -> None:
    script = (words("Hello Bob."), words("Hello Eve."), words("You are Bob."))
    async with ScriptedModel(*script) as model, chatting(tmp_path, "--no-tools", "--backend", model.url) as person:
        await say(person, "I am Bob.")
        await person.sees("Hello Bob.")
        await say(person, "/save bob")
        await person.sees("as bob")
        await say(person, "/context")
        await person.sees("of 7,168 tokens")
        await person.sees("instructions")
        person.types("I am", ALT_ENTER, "Eve.", ENTER)
        await person.sees("Hello Eve.")
        await say(person, "/undo")
        await person.sees("was removed")
        person.types(CTRL_U, CTRL_U, "\x7f", CTRL_U)
        await say(person, "/load")
        await person.sees("bob  (")
        await say(person, "/load nobody")
        await person.sees("there is no conversation 'nobody'")
        await say(person, "/load bob")
        await person.sees("after 1 message of yours")
        person.types(UP, UP, UP, UP)
        person.types(CTRL_U, "Who am I?", ENTER)
        await person.sees("You are Bob.")
        await say(person, "/hlep")
        await person.sees("Did you mean help?")
        await say(person, "/model nope")
        await person.sees("has no model 'nope'")
        await say(person, "/model")
        await person.sees("tiny (no tools")
        person.types("/exit", ENTER)
        assert await person.code() == 0
    assert b"Eve" not in model.asked[2]
    assert b"I am Bob." in model.asked[2]
    assert b"I am\\nEve." in model.asked[1]


async def test_sigterm_ends_it_and_the_terminal_is_as_it_was(tmp_path: Path) -> None:
    async with (
        ScriptedModel(hanging(sse(chunk({"content": "Once upon"})))) as model,
        chatting(tmp_path, "--no-tools", "--backend", model.url) as person,
    ):
        await say(person, "A long story!")
        await person.sees("Once upon")
        person.process.send_signal(signal.SIGTERM)
        assert await person.code() == 143
    assert "Traceback" not in person.seen
    assert person.raw.rfind("\x1b[?2004l") > person.raw.rfind("\x1b[?2004h"), "brackets around what is pasted"
    assert person.raw.rfind("\x1b[?25h") > person.raw.rfind("\x1b[?25l"), "the cursor is back"


@pytest.mark.parametrize("environment", [{"NO_COLOR": "1"}, {"TERM": "dumb"}])
async def test_plain_lines_where_they_are_wanted_and_a_person_is_asked_all_the_same(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    (tmp_path / "till.py").write_text(AGENT)
    async with (
        ScriptedModel(calling("pay", '{"amount":5}'), words("**Done.**")) as model,
        chatting(tmp_path, "till.py:agent", MODEL=model.url, **environment) as person,
    ):
        await person.sees("> ")
        person.types("Pay 5.\n")
        await person.sees('"amount": 5')
        await person.sees("? ")
        person.types("y\n")
        await person.sees("paid 5")
        await person.sees("answer  **Done.**")
        person.types(CTRL_D)
        assert await person.code() == 0
    assert "\x1b" not in person.raw


async def test_a_run_asks_as_a_chat_does_and_what_was_edited_runs(tmp_path: Path) -> None:
    (tmp_path / "till.py").write_text(AGENT + TILL)
    async with (
        ScriptedModel(calling("pay", '{"amount":5}')) as model,
        chatting(tmp_path, "till.py:till", "Pay 5.", "--backend", model.url, name="run", MODEL=model.url) as person,
    ):
        await person.sees('"amount": 5')
        await person.sees("[e] edit")
        person.types("e\n")
        await person.sees("change the arguments")
        person.types('{"amount": 4}\n')
        await person.sees("paid 4")
        assert await person.code() == 0


async def test_without_the_extra_a_sentence_says_what_to_install(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text("import sys\nsys.modules['prompt_toolkit'] = None\n")
    async with chatting(tmp_path, PYTHONPATH=str(tmp_path)) as person:
        await person.sees("pip install '.[chat]'")
        assert await person.code() == 2
