"""The tables and files in the pages name what there is, all of it and nothing else."""

import dataclasses
import inspect
import json
import re
import tomllib
from pathlib import Path
from pkgutil import resolve_name
from typing import get_args

import msgspec

from forge import Agent, Calls, Context, Limits, Workflow, testing
from forge.agent import file_tools, memory
from forge.agent.headless import Record, TaskLimits, read_task
from forge.agent.headless.record import EXIT_CODES, TaskOutcome
from forge.backends import Backend, named
from forge.backends.doctor import PROBES
from forge.backends.doctor.examination import FRESH, SHORT
from forge.backends.profile import Profile, from_toml, names
from forge.cli.chat.slash import HELP
from forge.cli.commands import COMMANDS, parse
from forge.cli.eval_run import EvalOptions
from forge.cli.run import load
from forge.evals.configurations import ABLATIONS, COMPACTORS, THINKING
from forge.evals.evaluation import MODES
from forge.guardrails import Guardrails
from forge.mcp import Http, Stdio
from forge.runtime.watching import Watching
from forge.tools import Tool
from forge.workflow.workflow import StepOptions
from stages import events
from stages.confidence import measure
from stages.guards import GUARDS
from stages.halt import Halt
from stages.offer import NARROWINGS
from stages.rules import REPLY_CHECKS
from tests.docs.pages import block, page

GROUPS = (Workflow, Limits, Context, Calls, Agent, Guardrails)


def test_every_halt_is_in_the_table() -> None:
    rows = page("workflow").split("| halt |")[1].split("\n\n")[0]
    assert re.findall(r"^\| `(\w+)`", rows, re.MULTILINE) == [halt.__name__ for halt in get_args(Halt)]


def test_every_name_to_turn_off_is_on_the_page_of_guards() -> None:
    named_there = re.findall(r"""[`"](\w+)[`"]""", page("guards"))
    assert {*GUARDS, *NARROWINGS, *REPLY_CHECKS} <= {*named_there}


def test_every_type_of_event_is_on_the_page_of_the_server() -> None:
    (types,) = re.findall(r"^The types are (.*?):", page("served"), re.MULTILINE)
    assert sorted(re.findall(r"`(\w+)`", types)) == sorted(e.__struct_config__.tag for e in get_args(events.Event))


def test_every_command_is_on_its_page() -> None:
    named_there = {line.split()[1] for line in block("cli", "sh").splitlines()}
    assert {command.name for command in COMMANDS} - named_there == {"bisect", "ablate"}, "those two stand in journal.md"


def test_every_name_of_the_kit_is_in_its_table() -> None:
    table = "".join(line for line in page("testing").splitlines() if line.startswith("| `"))
    assert set(re.findall(r"`(\w+)", table)) == set(testing.__all__)


def test_every_step_of_confidence_that_is_named_exists() -> None:
    steps = re.findall(r"^\| `(\w+)\(", page("confidence"), re.MULTILINE)
    assert steps
    assert all(hasattr(measure, name) for name in steps)


def test_every_public_name_of_the_memory_is_on_its_page() -> None:
    said = set(re.findall(r"\w+", page("memory")))
    assert {*memory.__all__} - said - {"Fact", "SavedSession", "SessionSummary"} == set()


def test_the_profile_is_one() -> None:
    assert from_toml(block("backends", "toml")).option_names["min_p"] == ""


def test_every_field_of_a_profile_and_every_name_is_told_of() -> None:
    text = page("backends")
    assert [*Profile.__struct_fields__] == re.findall(r"^\| `(\w+)` \|", text, re.MULTILINE)
    told = (name for name in names() if name not in {"openai-compatible", "llama-server"})
    assert all(f"`{name}" in text or f'"{name}"' in text for name in told)


def test_what_the_table_says_to_write_names_a_backend() -> None:
    rows = re.findall(r"^\| [^|]+ \| `([^`]+)` \|", page("backends"), re.MULTILINE)
    assert rows
    for spec in rows:
        named_backend: Backend = named(spec)
        assert named_backend


def test_the_file_of_models_is_one() -> None:
    assert len(msgspec.convert(tomllib.loads(block("evals", "toml")), EvalOptions).model) == 2


def test_every_name_of_an_axis_is_in_its_row() -> None:
    table = {line.split("`")[1]: line for line in page("evals").splitlines() if line.startswith("| `--")}
    axes = {"--mode": MODES, "--compact": COMPACTORS, "--think": THINKING}
    for option, choices in axes.items():
        assert set(re.findall(r"`(\w+)`", table[option])) - {"reasoning_effort"} == {*choices}
    ablations = dict(re.findall(r"^\| `(\w+)` \| (.*) \|$", page("evals").partition("### Ablations")[2], re.MULTILINE))
    assert {*ABLATIONS} <= {*ablations}


def test_the_tables_have_all_options_and_say_when_to_change_each() -> None:
    found = re.findall(r"^\| option \|.*\n\|---.*\n((?:\|.*\n)+)", page("workflow"), re.MULTILINE)
    for group, table in zip(GROUPS, found, strict=True):
        rows = [row.strip("|").split("|") for row in table.splitlines()]
        there = [name for row in rows for name in re.findall(r"`(\w+)`", row[0])]
        of_workflow = {option.name for option in dataclasses.fields(Workflow)} if group is Agent else set()
        own = [n for n in inspect.signature(group).parameters if n != "options" and n not in of_workflow]
        assert there == own, group.__name__
        # What says no more is a group of options, which has a table of its own.
        assert all(row[-1].strip() or "`limits`" in row[0] for row in rows), group.__name__


def test_the_options_of_guardrails_beside_its_own_are_all_named() -> None:
    text = page("workflow")
    sentence = text[text.index("[Guardrails](guardrails.md) take") :].split(", as above")[0]
    assert set(re.findall(r"`(\w+)`", sentence)) == {*StepOptions.__annotations__}


def test_the_agent_of_the_page_on_chat_is_loaded(tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(block("chat", "python"))
    agent = load(f"{tmp_path / 'shop.py'}:agent", Agent)
    assert agent.workflow.rules.tools[0].approval


def test_the_page_on_chat_has_every_command_and_no_other() -> None:
    there = re.findall(r"^\| `/(\w+)(?: ([^`]+))?` \|", page("chat"), re.MULTILINE)
    assert there == [(name, argument) for name, (argument, _) in HELP.items()]


def test_the_command_in_the_configuration_of_an_mcp_client_exists() -> None:
    parse(json.loads(block("mcp", "json"))["mcpServers"]["support"]["args"])


def test_the_table_names_the_options_of_mcp_servers_with_their_defaults() -> None:
    there = dict(re.findall(r"^\| `(\w+)=([^`]+)` \|", page("mcp"), re.MULTILINE))
    common = {*Stdio.__struct_fields__} & {*Http.__struct_fields__}
    assert there.keys() == common
    server = Stdio(["x"])
    numbers = ("timeout", "connect_timeout", "message_limit")
    assert [there[name] for name in numbers] == [str(round(getattr(server, name))) for name in numbers]


def test_the_table_is_the_file_tools(tmp_path: Path) -> None:
    rows = re.findall(r"^\| `(\w+)\((.*?)\)` \|.*\| (yes|no) \|$", page("files"), re.MULTILINE)
    made = {one.name: one.spec for one in file_tools(tmp_path) if isinstance(one, Tool)}
    assert {name for name, _, _ in rows} == {*made}
    for name, arguments, asks in rows:
        assert made[name].approval is (asks == "yes")
        assert all(f'"{argument}"'.encode() in bytes(made[name].parameters) for argument in arguments.split(", "))


def test_the_task_file_holds(tmp_path: Path) -> None:
    (tmp_path / "task.toml").write_text(block("headless", "toml"))
    assert read_task(tmp_path / "task.toml").limits.max_lines == 40


def test_the_tables_of_headless_are_complete() -> None:
    text = page("headless")
    assert [name for name in TaskLimits.__struct_fields__ if f"`{name}`" not in text] == []
    assert [field.name for field in msgspec.structs.fields(Record) if f"`{field.name}`" not in text] == [
        *("exit_code", "task", "folder")
    ]
    rows = dict(re.findall(r"^\| ([\d, ]+) \| `(\w+)` \|", text, re.MULTILINE))
    assert {code.split(",")[0]: name for code, name in rows.items()} == {
        str(code): name for name, code in EXIT_CODES.items()
    }
    assert {*rows.values()} == {*get_args(TaskOutcome)}


def test_every_topic_of_the_doctor_is_in_its_table_and_the_numbers_of_auto_are_right() -> None:
    text = page("doctor")
    assert [probe.topic for probe in PROBES if probe.topic.split(" by ")[0].split(" ")[0] not in text] == []
    assert f"at most five questions with at most {sum(p.tokens for p in SHORT)} reply tokens" in text
    assert (len(SHORT), FRESH.days, "seven days" in text) == (5, 7, True)


def test_the_page_of_names_names_what_there_is() -> None:
    table = (line.strip("|").split(" | ") for line in page("names").splitlines() if line.startswith("| "))
    rows = [[cell.strip() for cell in line] for line in table]
    dotted = {name for row in rows for name in re.findall(r"`((?:forge|stages)(?:\.\w+)+)`", row[1])}
    assert len(dotted) > 50
    for name in sorted(dotted):
        resolve_name(name)
    options = {*inspect.signature(Workflow).parameters, *Watching.__annotations__}
    for row in rows:
        named = re.findall(r"\boption `(\w+)", row[1])
        named += re.findall(r"`(\w+)`", row[0]) if re.match(r"options?(;|,|$)", row[1]) else []
        assert {*named} <= options, row[0]
        if row[1].startswith("run option") and "`" not in row[1].split(",")[0].split(";")[0]:
            assert re.findall(r"`(\w+)`", row[0])[0] in Watching.__annotations__, row[0]
