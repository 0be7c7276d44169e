"""The command line: exit codes, sentences instead of tracebacks, plain lines in a pipe."""

import asyncio
import io
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from forge import Workflow, run_sync, tool
from forge.cli.commands import parse
from forge.cli.console import Console, printable
from forge.cli.lines import View
from forge.cli.options import options_of
from forge.door.options import flags
from forge.interpreters.scripted import Scripted, call
from forge.journal.records import read_journal
from forge.proxy import ProxyOptions
from forge.runtime.recovery import resume_journal
from forge.serve import ServeOptions
from stages.effect import Ask, Fault, Rejected
from stages.events import RunHalted, Stamped, TurnStarted, Warned
from stages.halt import BadReplies, Cancelled
from stages.message import Kind
from stages.options import Options
from stages.wire.deltas import Ended, Retry, TextDelta
from tests.commands import forge
from tests.flows import Desk
from tests.misbehaving import misbehaving


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with misbehaving() as address:
        yield address


FLOW = '''
from forge import Workflow, tool

@tool
def finish() -> str:
    """Finish."""
    return "ok"

workflow = Workflow("w", tools=[finish], terminal_tool="finish", system_prompt="{tone}")
'''


NOBODY = "run FLOW Go. --backend http://127.0.0.1:1 --var tone=x --journal JOURNAL"


@pytest.fixture
def flow(tmp_path: Path) -> Path:
    path = tmp_path / "flow.py"
    path.write_text(FLOW)
    return path


def refused(*arguments: str) -> str:
    """The sentence of a wrong use: code 2, at most the title on standard output."""
    done = forge(*arguments)
    assert (done.returncode, done.stdout.removeprefix("w: Go.\n")) == (2, ""), done
    return done.stderr


def test_help_teaches_by_example() -> None:
    done = forge("--help")
    assert done.returncode == 0
    assert "forge run examples/orders.py" in done.stdout
    assert "exit codes: 0" in done.stdout
    assert "--backend" in forge("run", "--help").stdout
    assert "usage: forge" in refused(), "without a command"


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("rnu", "there is no command 'rnu'; there are: demo, chat, run, "),
        ("rnu", "Did you mean run?"),
        ("run flow.py Go. --backed local", "Did you mean --backend?"),
        ("run flow.py Go. --backend local --modle=x", "unrecognized arguments: --modle=x. Did you mean --model?"),
        ("run flow.py Go. --backend local --mode natve", "Did you mean native?"),
        (
            "run flow.py Go. --backend local --max-iterations 3 --max-tokens abc",
            "--max-tokens: it is 'abc'; it must be a whole number, at least 1; there is no option --max-iterations\n",
        ),
        ("run flow.py Go. --backend local --max-token abc --zzz", "at least 1; there is no option --zzz\n"),
        (
            "run flow.py --backed local",
            "MESSAGE --backend BACKEND; there is no option --backed. Did you mean --backend?",
        ),
        ("--versoin", "there is no option --versoin. Did you mean --version?"),
        (
            "run flow.py Go. --backend local --temperature hot",
            "--temperature: it is 'hot'; it must be a number",
        ),
        ("run flow.py Go. --backend local --seed 1.5", "argument --seed: it is '1.5'; it must be a whole number\n"),
        ("run flow.py Go. --backend local --context 8k", "it is '8k'; it must be a whole number, at least 1\n"),
        ("run flow.py Go. --backend local --timeout 5m", "it is '5m'; it must be a number, over 0 and under 86400"),
        ("proxy --port :80", "argument --port: it is ':80'; it must be a whole number, at least 0 and"),
        ("doctor --wrte x http://127.0.0.1:1", "Did you mean --write?"),
        ("run flow.py Go. --backend local --zzz", "unrecognized arguments: --zzz\n"),
        ("eval run --no-probe", "unrecognized arguments: --no-probe\n"),
        ("runs events 7f3a", "required: RUN; write forge runs events WORKFLOW RUN\n"),
        ("run orders.py", "required: MESSAGE, --backend; write forge run WORKFLOW MESSAGE --backend BACKEND\n"),
        ("demo --order A-18", "there is no order 'A-18'; there are: A-17, B-42, C-08, D-33. Did you mean A-17?"),
        ("run FLOW:other Go. --backend local", "has no workflow named 'other'; it has: workflow"),
        ("run FLOW Go. --backend local", "placeholder {tone}"),
        ("run FLOW Go. --backend local --var tone", "write it as NAME=VALUE"),
        ("resume FLOW none --backend local", "cannot read the journal none"),
        (f"{NOBODY} --redact nope", "there is no tool 'nope' with results to hide; tools: finish"),
        (f"{NOBODY} --redact-pattern (", "'(' is not a valid RE2 pattern: missing ): ("),
        (f"{NOBODY} --redact-env NO_SUCH", "the environment variable NO_SUCH is not set"),
        (f"{NOBODY} --api-key-env NO_SUCH", "the environment variable NO_SUCH is not set"),
        (f"{NOBODY} --profile no-such", "there is no profile 'no-such'"),
        (f"{NOBODY} --temperature -1", "argument --temperature: it is '-1'; it must be a number, at least 0"),
        (f"{NOBODY} --temperature nan", "--temperature: it is 'nan'; it must be a number, at least 0"),
        (f"{NOBODY} --backend local --profile no-such", "local has no profile; they are for a server, whose address"),
    ],
)
def test_wrong_use_is_told_in_a_sentence_before_anything_happens(flow: Path, words: str, says: str) -> None:
    journal = flow.with_name("j.jsonl")
    assert says in refused(*words.replace("FLOW", str(flow)).replace("JOURNAL", str(journal)).split())
    assert not journal.exists()


def test_help_loads_neither_the_terminal_s_library_nor_a_client() -> None:
    code = "import sys; from forge.cli.commands import parser; parser('run').format_help(); print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.split()
    assert {"rich", "httpx", "importlib.metadata", "docstring_parser"}.isdisjoint(loaded)


@pytest.mark.parametrize(("words", "kind"), [(["proxy"], ProxyOptions), (["serve", "flow.py"], ServeOptions)])
def test_each_flag_sets_its_option_and_no_other(words: list[str], kind: type[Options]) -> None:
    assert options_of(kind, parse(words)) == kind()
    for option, flag in flags(kind):
        fitting = "PATH" if flag.variable else "*" if flag.name == "--origin" else "7"
        value = [] if isinstance(option.default, bool) else [fitting]
        made = options_of(kind, parse([*words, flag.name, *value]))
        assert made != kind()
        assert replace(made, **{option.name: getattr(kind(), option.name)}) == kind()


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (None, "there is no file"),
        ("x = 1", "has no workflow; it needs a line like"),
        ("1 / 0", "cannot be imported: ZeroDivisionError: division by zero (line 1)"),
        ("raise SystemExit(0)", "cannot be imported: it ends the program (line 1)"),
        ("def (", "cannot be imported: SyntaxError"),
        (FLOW.replace('terminal_tool="finish"', 'terminal_tool="end", required_steps=["a"]'), "- required_steps"),
        ("from forge import Limits\nLimits(max_iterations=-5)", "- Limits: max_iterations is -5; it must be"),
        (FLOW + "other = Workflow('o', tools=[finish], terminal_tool='finish')", "flow.py:workflow or "),
    ],
)
def test_a_file_without_a_usable_workflow(tmp_path: Path, content: str | None, says: str) -> None:
    path = tmp_path / "flow.py"
    if content is not None:
        path.write_text(content)
    assert says in refused("run", str(path), "Go.", "--backend", "http://127.0.0.1:1", "--var", "tone=x")


def test_a_command_for_several_workflows_says_how_to_name_them(tmp_path: Path) -> None:
    path = tmp_path / "flow.py"
    path.write_text(FLOW + "other = Workflow('o', tools=[finish], terminal_tool='finish')")
    said = refused("serve", str(path), "--backend", "http://127.0.0.1:1")
    assert f"write forge serve {path}:workflow {path}:other, and the options as before" in said


@pytest.mark.parametrize("name", ["json", "two words"])
def test_a_file_named_like_another_module_hides_nothing(server: str, tmp_path: Path, name: str) -> None:
    (tmp_path / f"{name}.py").write_text("import json, tone_of_ours\n" + FLOW)
    (tmp_path / "tone_of_ours.py").write_text("import email.message, rich.text, json\njson.dumps(1)\n")
    done = forge(
        *("run", str(tmp_path / f"{name}.py"), "Go.", "--backend", f"{server}/empty", "--no-probe", "--var", "tone=x"),
        *("--journal", str(tmp_path / "j")),
    )
    assert "the server's answer has no choices" in done.stdout, done


def test_a_run_that_halts_says_why_and_where_its_journal_is(flow: Path, server: str, tmp_path: Path) -> None:
    journal = tmp_path / "runs" / "j.jsonl"
    words = ("run", str(flow), "Go.", "--backend", f"{server}/good", "--var", "tone=x", "--journal", str(journal))
    done = forge(*words)
    assert done.returncode == 1
    assert "halted  the model gave no usable tool call in 4 attempts" in done.stdout
    assert f"4 model calls. Journal: {journal}" in done.stdout
    assert len(read_journal(journal).entries) == 4
    assert "already exists" in refused(*words)
    assert "\x1b" not in done.stdout, "no escape codes in a pipe"


def test_journals_are_where_forge_state_says(flow: Path, server: str, tmp_path: Path) -> None:
    words = ("run", str(flow), "Go.", "--backend", f"{server}/good", "--var", "tone=x")
    done = forge(*words, FORGE_STATE=str(tmp_path / "mine"))
    (journal,) = (tmp_path / "mine" / "runs").iterdir()
    assert f"Journal: {journal}" in done.stdout


def drawn(width: int, **environment: str) -> str:
    written = io.StringIO()
    console = Console(file=written, width=width, force_terminal=True, highlight=False, _environ=environment)
    script = Scripted(["Hm, " + "let me see. " * 20, call("look", what="a"), call("finish", result="ok")])
    run_sync(Desk().workflow, "Go.", backend=script, on_event=View(console, live=False))
    return written.getvalue()


DIM = re.compile(r"\x1b\[(?:[\d;]*;)?2(?:;[\d;]*)?m([^\x1b]*)")


def test_only_secondary_text_is_dim() -> None:
    dim = "".join(DIM.findall(drawn(100, TERM="xterm")))
    assert "model calls left" in dim
    for primary in ("Your reply was plain text", "a is 7", "Hm, let me see", "finish returned"):
        assert primary not in dim


def test_long_lines_are_wrapped_beside_their_label() -> None:
    plain = re.sub(r"\x1b\[[\d;]*m", "", drawn(60, TERM="xterm")).splitlines()
    (said,) = (n for n, line in enumerate(plain) if line.startswith("     said  Hm, let me see."))
    assert plain[said + 1].startswith(" " * 11 + "see. let me see."), plain
    assert max(map(len, plain)) <= 60
    narrow = re.sub(r"\x1b\[[\d;]*m", "", drawn(30, TERM="xterm")).splitlines()
    assert max(map(len, narrow)) <= 30


def test_a_terminal_without_colours_gets_none() -> None:
    assert "\x1b" not in drawn(80, TERM="dumb")
    colours = re.compile(r"\x1b\[(?:[\d;]*;)?(?:3[0-7]|9[0-7])(?:;[\d;]*)?m")
    assert colours.search(drawn(80, TERM="xterm"))
    assert not colours.search(drawn(80, TERM="xterm", NO_COLOR="1"))


@pytest.mark.parametrize("encoding", ["ascii", "cp1252"])
def test_an_encoding_that_lacks_a_character_is_no_error(encoding: str) -> None:
    command = [sys.executable, "-m", "forge", "models"]
    where = {**os.environ, "PYTHONIOENCODING": encoding}
    done = subprocess.run(command, capture_output=True, check=False, env=where)
    assert (done.returncode, done.stderr) == (0, b"")
    assert ("part1 … " if encoding == "cp1252" else "part1 ... ") in done.stdout.decode(encoding)


def test_what_a_model_says_cannot_steer_the_terminal() -> None:
    assert "\x1b" not in printable("\x1b]0;title\x07\x1b[2Jhello\r\nworld")
    assert printable("a\n\n b") == "a b"
    assert printable("x" * 1000).endswith("… (600 more)")
    assert printable("x" * 410) == "x" * 410  # the note would be longer than what it stands for


@tool(approval=True)
def pay(amount: float) -> str:
    """Pay."""
    return f"paid {amount}"


def test_no_spinner_overwrites_the_question_that_a_resumed_run_begins_with(tmp_path: Path) -> None:
    flow, journal = Workflow("till", tools=[pay], terminal_tool="pay"), tmp_path / "run.jsonl"
    run_sync(flow, "Pay 5.", backend=Scripted([call("pay", amount=5)]), journal=str(journal))
    written = io.StringIO()
    view = View(Console(file=written, width=80, force_terminal=True))

    async def ask(question: Ask) -> Rejected:
        before = written.getvalue()
        await asyncio.sleep(0.2)  # a spinner draws a dozen times a second
        assert written.getvalue() == before
        return Rejected(digest=question.digest, reason="no")

    with view.connecting("somewhere"):
        assert written.getvalue() == "\x1b[?25l"  # the cursor is hidden while it spins
        ended = asyncio.run(resume_journal(flow, journal, backend=Scripted(["No."] * 9), on_event=view, ask=ask))
    assert isinstance(ended.failure().halt, BadReplies)


def test_a_reply_that_is_coming_is_shown_by_its_end_and_cannot_steer_the_terminal() -> None:
    written = io.StringIO()
    view = View(Console(file=written, width=200, force_terminal=True))
    for event in (
        TurnStarted(turn=1, prompt_tokens=1, calls_left=1, context_tokens=0),
        TextDelta(text="x" * 500 + "the \x1b[31mend"),
        Warned(kind=Kind.ITERATION_WARNING, text="a line, below which the status is drawn again"),
        Retry(fault=Fault(kind="interrupted", detail="it broke"), attempt=1, seconds=0.5),
        Ended(),
        RunHalted(halt=Cancelled(turns=1, completed=())),
    ):
        view(Stamped(run="r", event=event))
    assert "the �[31mend" in written.getvalue()
    assert "in 0.5 seconds: it broke" in written.getvalue()
    assert "x" * 100 not in written.getvalue()
