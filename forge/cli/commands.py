"""The commands: their arguments, descriptions and examples."""

import argparse
import re
import sys
from collections.abc import Callable
from datetime import timedelta
from functools import cache
from pathlib import Path
from typing import Annotated, Any, TypeAlias, get_args

import msgspec
from msgspec import Meta, Struct

from forge._installation import VERSION
from forge.cli.parser import Parser
from forge.connection import TIMEOUT, ModeName
from forge.door.options import ACCESS, Flag, flags
from stages.options import AtLeastOne, Hint, Options, Tokens, choices_of, wrong_options
from stages.wire.sampling import DEFAULT_MAX_TOKENS, Temperature

# Options shared by several commands: the backend, its model, the workflow.

_BACKEND = (
    "local (llama.cpp in this process), a server's address, NAME:MODEL or NAME:ADDRESS (docs/backends.md); "
    "llama-server:FILE starts a server"
)
_MODEL = "model: for local, a name from `forge models` or a GGUF file; otherwise the name that the server uses"
_PROFILE = "server profile: a name or a TOML file"
_KEY = "environment variable with the server's key"
_JOURNAL = "journal file to record the run in (default: a new file in the state folder)"

BackendName: TypeAlias = Annotated[str, Flag(_BACKEND)]
ModelName: TypeAlias = Annotated[str, Flag(_MODEL)]
ProfileName: TypeAlias = Annotated[str, Flag(_PROFILE)]
MaxTokens: TypeAlias = Annotated[Tokens, Flag("maximum tokens per reply (default: %(default)s)")]
KeyVariable: TypeAlias = Annotated[str | None, Flag(_KEY, "NAME")]
Timeout: TypeAlias = Annotated[float, Meta(gt=0, lt=86400)]
_MODE = Flag("how tool calls are requested (default: what the server supports)")
_TEMPERATURE = Flag("sampling temperature (default: 0.1; hosted and known reasoning models use their own)")
_CONTEXT = Flag("context size in tokens (default: as the server reports; local: 4096)")
_TIMEOUT = Flag("seconds without a byte from the server (default: %(default)g)")
_RECOMMENDED = Flag("use the sampling options recommended by the model's authors, if known")


class ModelFlags(Options, frozen=True, kw_only=True):
    """The model and how its server is asked, on the command line; `forge.cli.options.backend_of` reads them."""

    model: ModelName = ""
    mode: Annotated[ModeName, _MODE] = "auto"
    probe: Annotated[bool, Flag("do not probe an unknown server for what it supports")] = True
    temperature: Annotated[Temperature | None, _TEMPERATURE] = None
    context: Annotated[Tokens | None, _CONTEXT] = None
    timeout: Annotated[Timeout, _TIMEOUT] = TIMEOUT


class SamplingFlags(ModelFlags, frozen=True, kw_only=True):
    """Besides, how replies are sampled; the clients of a proxy say that in each request."""

    model_sampling: Annotated[bool, _RECOMMENDED] = False
    seed: Annotated[int | None, Flag("sampling seed, for reproducible runs")] = None
    max_tokens: MaxTokens = DEFAULT_MAX_TOKENS
    api_key_env: KeyVariable = None


def add_backend(parser: Parser, *, default: str = "", kind: type[ModelFlags] = SamplingFlags) -> None:
    """Options for the backend and how it is asked; it is required unless `default` says what is used without it."""
    parser.add_argument(
        "--backend",
        required=not default,
        help=_BACKEND + (f" (default: {default})" if default else ""),
    )
    parser.add_argument("--profile", help=_PROFILE)
    _add_options(parser, kind)


def _workflow(parser: Parser) -> None:
    parser.add_argument("workflow", help="FILE.py:NAME, or FILE.py if it defines only one")


def _values(parser: Parser) -> None:
    parser.add_argument(
        "--var", action="append", default=[], metavar="NAME=VALUE", help="value for {NAME} in the system prompt"
    )


def _add_telemetry(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument_group("logging and telemetry").add_argument
    add(
        "--otel",
        action="store_true",
        help="export spans and metrics with OpenTelemetry, as configured or by OTLP over HTTP (docs/telemetry.md)",
    )
    add(
        "--log-format",
        choices=("text", "json"),
        help="log each turn and request on standard error, names and sizes only; json: one JSON object per line",
    )


def _of_journal(parser: Parser) -> None:
    parser.add_argument("file", metavar="FILE", help="journal written by forge run")


def _add_options(parser: Parser, kind: type[Struct], title: str = "") -> None:
    """The flags of a group of options, with its defaults unless the parser leaves out what is not given.

    `title`: of the flags without a group of their own.
    """
    group = cache(parser.add_argument_group)
    for option, flag in sorted(flags(kind), key=lambda pair: pair[1].group == ACCESS):
        value, default = get_args(option.type)[0], option.default
        told: dict[str, Any] = {"dest": option.name}
        if value is bool:
            told["action"] = "store_false" if default else "store_true"
        elif default == ():
            told |= {"action": "append", "metavar": flag.metavar}
            default = []
        else:
            is_path = Path in get_args(value)
            read = Path if is_path else _reader(option.type)
            told |= {"choices": found} if (found := choices_of(value)) else {"type": read, "metavar": flag.metavar}
            default = None if is_path or flag.variable else default // flag.unit if flag.unit > 1 else default
        if parser.argument_default is None:
            told["default"] = default
        add = group(flag.group or title).add_argument if flag.group or title else parser.add_argument
        add(*flag.name.split(), help=flag.help % {"default": default}, **told)


def _reader(hint: Hint) -> Callable[[str], object]:
    """A reader of arguments of that type; ArgumentTypeError for others, and for numbers out of its bounds."""

    def read(text: str) -> object:
        try:
            return msgspec.convert(text, hint, strict=False)
        except msgspec.ValidationError:
            (wrong,) = wrong_options({"it": text}, {"it": hint})["it"]
            raise argparse.ArgumentTypeError(wrong.removesuffix(" or None")) from None

    return read


_COUNT = _reader(AtLeastOne)


# The arguments of each command.


def _fill_demo(parser: Parser) -> None:
    parser.add_argument("--order", metavar="NUMBER", help="order to report on: A-17, B-42, … (default: random)")
    parser.add_argument("--message", help="send this request instead")
    parser.set_defaults(command="forge.cli.run:run_demo", backend="local", profile=None)
    _add_options(parser, SamplingFlags)
    parser.add_argument("--journal", type=Path, help=_JOURNAL)


def _fill_run(parser: Parser) -> None:
    _workflow(parser)
    parser.add_argument("message", help="user message")
    _values(parser)
    parser.set_defaults(command="forge.cli.run:run_workflow")
    add_backend(parser)
    add = parser.add_argument
    add("--journal", type=Path, help=_JOURNAL)
    add(
        "--redact",
        action="append",
        default=[],
        metavar="TOOL.ARGUMENT",
        help="hide this argument in the journal (*.ARGUMENT: for every tool); TOOL alone hides the tool's results",
    )
    add("--redact-env", action="append", default=[], metavar="NAME", help="hide the value of this environment variable")
    add("--redact-pattern", action="append", default=[], metavar="RE2", help="hide all matches of this pattern")
    _add_telemetry(parser)


def _fill_resume(parser: Parser) -> None:
    _workflow(parser)
    parser.add_argument("journal", type=Path, help="journal of the run")
    parser.set_defaults(command="forge.cli.run:resume_workflow")
    add_backend(parser)


def _fill_chat(parser: Parser) -> None:
    add = parser.add_argument
    add("agent", nargs="?", help="your own agent: FILE.py:NAME, or FILE.py if it defines only one")
    add("--resume", nargs="?", const="", metavar="NAME", help="resume the last conversation in this folder, or NAME")
    add("--sessions", action="store_true", help="list the conversations in this folder and exit")
    parser.set_defaults(command="forge.cli.chat.conversation:run_chat")
    add_default_agent(parser)
    _add_telemetry(parser)


def add_default_agent(parser: Parser) -> None:
    """Options of the agent that `forge chat` makes; your own agent has its own."""
    add = parser.add_argument
    add("--no-tools", dest="tools", action="store_false", help="chat without tools for the files in this folder")
    add("--no-agents-md", dest="agents_md", action="store_false", help="do not read AGENTS.md in this folder")
    add_backend(parser, default="local")


def _fill_agent(parser: Parser) -> None:
    actions = parser.add_subparsers(required=True, metavar="ACTION", parser_class=Parser)
    fill_agent_run(actions.add_parser("run", help="work on a task file unattended"))


def fill_agent_run(parser: Parser) -> None:
    """Arguments of `forge agent run`."""
    add = parser.add_argument
    add("task", type=Path, metavar="TASK.toml", help="task file (docs/headless.md)")
    add("--record", type=Path, metavar="FILE", help="write the record to this file (default: standard output)")
    add("--journal", type=Path, help=_JOURNAL)
    add("--resume", type=Path, metavar="JOURNAL", help="resume the interrupted run in this journal")
    parser.set_defaults(command="forge.cli.headless:run_headless")
    add_backend(parser, default="from the task file or its agent")


def _fill_doctor(parser: Parser) -> None:
    add = parser.add_argument
    add("url", help="server address, such as http://127.0.0.1:8080")
    add("--model", default="", help="model to examine (default: the first one that the server lists)")
    add("--api-key-env", metavar="NAME", help=_KEY)
    add("--timeout", type=_reader(Timeout), default=60.0, help="maximum seconds per answer (default: %(default)g)")
    add("--write", type=Path, metavar="FILE", help="also write the profile to this TOML file")
    add("--json", action="store_true", help="print the findings as JSON and progress to standard error")
    parser.set_defaults(command="forge.cli.doctor:run_doctor")


def _fill_replay(parser: Parser) -> None:
    _of_journal(parser)
    add = parser.add_argument
    add(
        "--workflow",
        metavar="FILE.py:NAME",
        help="workflow to replay with (demo: that of forge demo)",
    )
    add("--to", type=_reader(int), metavar="N", help="stop at state N and show it in full")
    add("--html", type=Path, metavar="OUT", help="write the run's timeline as an HTML page")
    parser.set_defaults(command="forge.cli.replay:run_replay")


def _fill_bisect(parser: Parser) -> None:
    _of_journal(parser)
    parser.add_argument(
        "--workflow",
        action="append",
        required=True,
        metavar="FILE.py:NAME",
        help="workflow to compare with; give it twice to compare two",
    )
    parser.set_defaults(command="forge.cli.compare:run_bisect")


def _fill_ablate(parser: Parser) -> None:
    _of_journal(parser)
    parser.add_argument(
        "--workflow", required=True, metavar="FILE.py:NAME", help="workflow that the run was recorded with"
    )
    parser.set_defaults(command="forge.cli.compare:run_ablate")


def _fill_proxy(parser: Parser) -> None:
    from forge.proxy.options import ProxyOptions  # noqa: PLC0415 - only this command needs the proxy

    add_backend(parser, default="http://127.0.0.1:8080", kind=ModelFlags)
    parser.set_defaults(command="forge.cli.proxy:run_proxy", backend="http://127.0.0.1:8080")
    parser.set_defaults(model_sampling=False, seed=None, max_tokens=None)  # each request brings its own
    parser.add_argument(
        "--backend-api-key-env",
        dest="api_key_env",
        metavar="NAME",
        help="environment variable with the backend's key (default: forward the client's)",
    )
    _add_options(parser, ProxyOptions, "request handling")
    _add_telemetry(parser)


def _fill_serve(parser: Parser) -> None:
    from forge.serve.options import ServeOptions  # noqa: PLC0415 - only this command needs the server

    parser.add_argument("workflows", nargs="+", metavar="WORKFLOW", help=_SERVED)
    _add_database(parser)
    _working(parser)
    add_backend(parser, default=_OWN)
    _add_options(parser, ServeOptions)
    _add_telemetry(parser)
    parser.set_defaults(command="forge.cli.serve:run_serve")


def _fill_key(parser: Parser) -> None:
    add = parser.add_argument
    add("owner", help="owner of the key: a key only sees its owner's runs, unless it has the scope admin")
    add(
        "--key-file",
        type=Path,
        metavar="FILE",
        required=True,
        help="key file of forge serve; created if it does not exist",
    )
    add(
        "--scopes",
        default="read,run,answer",
        metavar="LIST",
        help="permissions: read, run (start, cancel, delete), answer, metrics (GET /metrics), admin (all of these, on "
        "everyone's runs); default: %(default)s",
    )
    parser.set_defaults(command="forge.cli.serve:run_key")


def _fill_mcp(parser: Parser) -> None:
    _workflow(parser)
    parser.add_argument(
        "--description", default="", help="description of the tool for clients (default: the names of its own tools)"
    )
    _values(parser)
    parser.set_defaults(command="forge.cli.mcp:run_mcp")
    add_backend(parser, default="that of the served agent")


def _fill_eval(parser: Parser) -> None:
    commands = parser.add_subparsers(required=True, metavar="COMMAND", dest="eval_command", parser_class=Parser)
    for name, summary, fill in (
        ("run", "run scenarios on a model and record each result", _fill_eval_run),
        ("list", "list scenarios with their tags and subject", _fill_eval_list),
        ("report", "compare configurations, as Markdown or an HTML page", _fill_eval_report),
        ("check", "exit with 1 if results are significantly worse than a baseline", _fill_eval_check),
    ):
        fill(commands.add_parser(name, help=summary, description=f"{summary[0].upper()}{summary[1:]}."))


def _fill_eval_run(parser: Parser) -> None:
    # Options that are not given are left out of the namespace: a file may set them, and `EvalOptions` has defaults.
    parser.argument_default = argparse.SUPPRESS
    from forge.cli.eval_run import EvalOptions, ModelOptions  # noqa: PLC0415 - only this command needs the evals

    _scenarios(parser)
    _add_options(parser, ModelOptions)
    add = parser.add_argument
    add("--mode", type=_names, metavar="MODE,…", help="modes to compare: auto (default), native, prompted, constrained")
    add(
        "--ablation",
        type=_names,
        metavar="NAME,…",
        help="guardrails: reforged (all; default), no_rescue, no_nudge, …, bare",
    )
    add("--compact", type=_names, metavar="NAME,…", help="compaction: tiered, sliding, none (default: the scenario's)")
    add("--think", type=_names, metavar="HOW,…", help="thinking: on, off, low, medium, high (default: the model's)")
    add(
        "--against",
        type=_names,
        metavar="PLAYER,…",
        help="other players to compare with: plain, or players from FILE.py",
    )
    add(
        "--only",
        type=_names,
        metavar="NAME,…",
        help="run only the configurations with these names: 'plain,forge auto bare'",
    )
    _add_options(parser, EvalOptions)
    add(
        "--config",
        type=Path,
        default=None,
        metavar="FILE.toml",
        help="read models and options from a file (docs/evals.md)",
    )
    add("--probe", action="store_true", default=False, help="run nothing; print what the server supports")
    _add_telemetry(parser)
    parser.set_defaults(command="forge.cli.eval_run:run_eval")


def _fill_eval_list(parser: Parser) -> None:
    _scenarios(parser)
    parser.set_defaults(command="forge.cli.eval_run:run_scenario_list")


def _fill_eval_report(parser: Parser) -> None:
    add = parser.add_argument
    add("files", nargs="+", type=Path, metavar="FILE", help="results of forge eval run")
    add("--against", default="", metavar="NAME", help="compare this configuration with the others of the same model")
    add("--title", default="", help="title of the report (default: Evals, or the model names on a page)")
    add("--html", type=Path, metavar="OUT", help="write the report as a self-contained HTML page")
    parser.set_defaults(command="forge.cli.eval_report:run_report")


def _fill_eval_check(parser: Parser) -> None:
    add = parser.add_argument
    add("file", type=Path, metavar="FILE", help="new results")
    add("--against", type=Path, required=True, metavar="BASELINE", help="results to compare with")
    parser.set_defaults(command="forge.cli.eval_report:run_check")


def _scenarios(parser: Parser) -> None:
    add = parser.add_argument
    add(
        "files",
        nargs="*",
        default=(),
        metavar="FILE.py",
        help="files with your own scenarios and players, instead of a suite",
    )
    add("--suite", metavar="all|seeds|FILE.py", help="built-in suite (default without FILE.py: all), or a file")
    add("--scenario", type=_names, metavar="NAME,…", help="only these scenarios")
    add("--tags", type=_names, metavar="TAG,…", help="only scenarios with one of these tags")


def _names(text: str) -> tuple[str, ...]:
    names = tuple(filter(None, (name.strip() for name in text.split(","))))
    if not names:
        raise argparse.ArgumentTypeError("it is empty; leave it out, or give comma-separated names")
    return names


def _fill_models(parser: Parser) -> None:
    parser.set_defaults(command="forge.cli.models:run_list", json=False)
    actions = parser.add_subparsers(metavar="ACTION", parser_class=Parser)
    listed = actions.add_parser("list", help="list models with their source and whether they are downloaded (default)")
    for one in (parser, listed):  # without a default, so that `forge models --json list` works too
        one.add_argument("--json", action="store_true", default=argparse.SUPPRESS, help="print the models as JSON")
    for name, summary in (("pull", "download a model"), ("remove", "delete a model from the cache")):
        action = actions.add_parser(name, help=summary)
        action.add_argument("name", metavar="MODEL", help="name of the model in forge models")
        action.set_defaults(command=f"forge.cli.models:run_{name}")


_Verbs: TypeAlias = "argparse._SubParsersAction[Parser]"  # noqa: SLF001 - argparse has no public name for it


def _fill_runs(parser: Parser) -> None:
    """Arguments of `forge runs`: journals without a verb, otherwise durable runs."""
    parser.set_defaults(command="forge.cli.run:run_runs", folder=None, last=10, json=False)
    verbs = parser.add_subparsers(metavar="VERB", parser_class=Parser, title="verbs")
    journals = verbs.add_parser("journals", help="list the most recent journals of forge run and forge demo (default)")
    journals.add_argument("folder", nargs="?", type=Path, help="folder with journals (default: forge's state folder)")
    last = "number of journals to show (default: 10)"
    for one in (parser, journals):  # without defaults, so that `forge runs --json journals` works too
        one.add_argument("--last", type=_COUNT, default=argparse.SUPPRESS, metavar="N", help=last)
        one.add_argument("--json", action="store_true", default=argparse.SUPPRESS, help="print the journals as JSON")
    _durable_verbs(verbs)


def _durable_verbs(verbs: _Verbs) -> None:
    work = _verb(verbs, "work", "perform durable runs", _WORK)
    work.add_argument("workflows", nargs="+", metavar="WORKFLOW", help=_SERVED)
    _working(work)
    work.add_argument("--until-idle", action="store_true", help="exit when no run is queued or running")
    add_backend(work, default=_OWN)

    start = _verb(verbs, "start", "start a durable run and print its id", _START)
    _workflow(start)
    start.add_argument("message", help="user message")
    _values(start)
    start.add_argument("--id", help="your own id; starting the same run twice with it starts it once")
    start.add_argument("--conversation", default="", metavar="NAME", help="continue this conversation, or start it")
    start.add_argument("--priority", type=_reader(int), metavar="N", help="priority; 1 is taken first")

    listed = _verb(verbs, "list", "list durable runs, latest first")
    listed.add_argument("--last", type=_COUNT, default=20, metavar="N", help="runs per page (default: %(default)s)")
    listed.add_argument("--cursor", default="", help="show the page that this cursor points to")
    listed.add_argument("--json", action="store_true", help="print the page as JSON")

    shown = _of_run(verbs, "show", "show a run and its open question")
    shown.add_argument("--json", action="store_true", help="print the run as JSON")
    _of_run(verbs, "result", "wait for a run to end and print its value", _RESULT)

    answer = _of_run(verbs, "answer", "answer a run's open question", _ANSWER)
    said = answer.add_mutually_exclusive_group(required=True)
    said.add_argument(
        "--approve", action="store_true", help="approve the call, even if an earlier one may have taken effect"
    )
    said.add_argument("--reject", metavar="REASON", help="reject the call; the model sees the reason")
    said.add_argument(
        "--happened", nargs="?", const="", metavar="RESULT", help="the call with the unknown outcome took effect"
    )
    said.add_argument(
        "--did-not-happen",
        action="store_true",
        help="the call with the unknown outcome had no effect; run it, or ask again if it needs approval",
    )
    answer.add_argument("--arguments", metavar="JSON", help="with --approve: run the call with these arguments instead")
    answer.add_argument(
        "--digest",
        help="only answer this question, given by the first characters of its digest; fail if the run asks another "
        "(default: the current question)",
    )
    _of_run(verbs, "cancel", "cancel a run; it ends as soon as the current step can be stopped")
    _of_run(verbs, "retry", "resume a run that failed, or to which the model's server or a person gave no answer")
    upgrade = _verb(verbs, "upgrade", "resume runs started by another version of forge", _UPGRADE)
    upgrade.add_argument("runs", nargs="*", metavar="RUN", help="ids printed by forge runs start (default: all)")

    events = _verb(verbs, "events", "print a run's events as JSON lines until it ends")
    _workflow(events)
    events.add_argument("run", metavar="RUN", help="id printed by forge runs start")
    events.add_argument("--after", type=_sequence, metavar="N.N", help="only print events after this sequence number")
    export = _of_run(verbs, "export", "write a run as a journal, for forge replay, bisect and ablate")
    export.add_argument("file", type=Path, help="journal to write; it must not exist yet")
    _of_run(verbs, "delete", "delete a finished run")

    prune = _verb(verbs, "prune", "delete runs that ended long ago")
    prune.add_argument(
        "--older",
        type=_age,
        required=True,
        metavar="AGE",
        help="minimum time since they ended, such as 30d, 12h, 15m or 90s",
    )


def _verb(verbs: _Verbs, name: str, summary: str, about: str = "") -> Parser:
    made = verbs.add_parser(name, help=summary, description=about or f"{summary[0].upper()}{summary[1:]}.")
    _add_database(made)
    made.set_defaults(command=f"forge.cli.durable:run_{name}")
    return made


def _add_database(parser: Parser) -> None:
    parser.add_argument(
        "--database",
        metavar="FILE|URL",
        help="database of the runs: a file (SQLite) or postgresql://… (default: FORGE_DATABASE, or runs.db in forge's "
        "state folder)",
    )


def _working(parser: Parser) -> None:
    """Options for commands that perform runs."""
    add = parser.add_argument
    add("--concurrency", type=_COUNT, default=16, metavar="N", help="maximum concurrent runs (default: 16)")
    add(
        "--per-minute",
        type=_COUNT,
        metavar="N",
        help="maximum runs started per minute, across all workers (default: no limit)",
    )
    add("--slots", type=_COUNT, metavar="N", help="maximum concurrent model calls (default: no limit)")
    add(
        "--answer-within",
        type=_age,
        default="7d",
        metavar="AGE",
        help="time until unanswered questions expire (default: 7d)",
    )


def _of_run(verbs: _Verbs, name: str, summary: str, about: str = "") -> Parser:
    """A verb for a single run."""
    made = _verb(verbs, name, summary, about)
    made.add_argument("run", metavar="RUN", help="id printed by forge runs start")
    return made


_SERVED = "workflow or agent: FILE.py:NAME, or FILE.py if it defines only one"
_OWN = "that of each agent"
_WORK = (
    "Perform durable runs until Ctrl-C. Any number of workers can share a PostgreSQL database; workers on one machine "
    "can share a SQLite file. If a worker stops or crashes, another resumes its runs."
)
_START = "Start a durable run and print its id. It runs as soon as a worker for this workflow is free."
_UPGRADE = (
    "Hand runs started by another version of forge to this version's workers, which resume them from the last recorded "
    "step. Stop the other version's workers first. A run whose recorded steps do not fit this version fails with an "
    "error."
)
_RESULT = (
    "Wait for a run to end and print its value. Exit codes: 0 completed, 1 halted, 2 wrong usage or failed run, 3 "
    "waiting for a person."
)
_ANSWER = (
    "Answer a run's open question. A call that needs approval is approved or rejected. If a call was cut short, its "
    "outcome is unknown: find out whether it took effect, and tell the run."
)


def _sequence(text: str) -> tuple[int, int]:
    found = re.fullmatch(r"([0-9]{1,9})\.([0-9]{1,9})", text)
    if not found:
        raise argparse.ArgumentTypeError(f"{text!r} is not a sequence number; write it like 3.1")
    return int(found[1]), int(found[2])


def _age(text: str) -> timedelta:
    found = re.fullmatch(r"(\d{1,6})([smhd])", text)
    if not found or not int(found[1]):
        raise argparse.ArgumentTypeError(f"{text!r} is not a duration; write it like 30d, 12h, 15m or 90s")
    return int(found[1]) * timedelta(seconds={"s": 1, "m": 60, "h": 3600, "d": 86400}[found[2]])


def _fill_completion(parser: Parser) -> None:
    parser.add_argument("shell", choices=("bash", "zsh", "fish"), help="bash, zsh or fish")
    parser.set_defaults(command="forge.cli.completion:run_completion")


# The table of commands, and the parser of all.

_EXIT_CODES = """\
exit codes: 0 the run reached its goal, 1 it halted (the reason is printed), 2 wrong usage,
            130 cancelled by Ctrl-C, 143 by SIGTERM"""


class Command(Struct, frozen=True, kw_only=True):
    """A command. `fill` adds its arguments to a parser; each example is a complete command line."""

    name: str
    summary: str
    about: str
    examples: tuple[str, ...]
    fill: Callable[[Parser], None]
    codes: str = ""


COMMANDS = (
    Command(
        name="demo",
        summary="run a three-step workflow on a real model in this process",
        about="Looks up an order and its customer and sends a report, using a small model in this process\n"
        "(llama.cpp). No server, no key, no GPU. The first run downloads the model into the cache folder.",
        examples=("forge demo", "forge demo --order A-17 --model qwen2.5-coder-1.5b --seed 7"),
        fill=_fill_demo,
        codes=_EXIT_CODES,
    ),
    Command(
        name="chat",
        summary="chat with an agent that has tools, approvals and a memory",
        about="Starts a chat with an agent in the terminal: your own, or a default one with tools for the files in\n"
        "this folder. Enter sends; Alt-Enter inserts a newline. Ctrl-C cancels the current work. Messages typed while\n"
        "the agent works reach it with the next tool results. /help lists the commands. Conversations are saved;\n"
        "--resume continues one. In a pipe, each line of input is a message (docs/chat.md).",
        examples=(
            "forge chat",
            "forge chat --backend http://127.0.0.1:8080",
            "forge chat shop.py:agent",
            "forge chat --resume",
            "forge chat --sessions",
        ),
        fill=_fill_chat,
        codes="exit codes: 0 conversation ended, 2 wrong usage or no model, 130 Ctrl-C, 143 SIGTERM;\n"
        "            without a terminal, 1 if the agent could not answer a message",
    ),
    Command(
        name="run",
        summary="run your own workflow",
        about="Runs a Workflow defined in a Python file and shows each turn.",
        examples=(
            'forge run examples/orders.py "Report on order A-17" --backend local',
            'forge run flow.py:support "The invoice is wrong" --backend http://127.0.0.1:8080 --var tone=friendly',
        ),
        fill=_fill_run,
        codes=_EXIT_CODES,
    ),
    Command(
        name="resume",
        summary="resume an interrupted run",
        about="Resumes a run of a workflow or agent from its journal after a crash, Ctrl-C or an unreachable server,\n"
        "and continues the journal. Completed calls are not repeated (docs/tools.md). Use the same model and options.",
        examples=(
            "forge resume flow.py:support run.jsonl --backend http://127.0.0.1:8080",
            "forge resume demo run.jsonl --backend local --seed 7",
        ),
        fill=_fill_resume,
        codes=_EXIT_CODES,
    ),
    Command(
        name="agent",
        summary="run an agent unattended on a task file, within limits",
        about="forge agent run TASK.toml runs an agent on a task without a person. The task file lists the files it\n"
        "may write and the commands it may run, which is checked before each call; gates, such as tests, must pass at\n"
        "the end. Progress goes to standard error, a JSON record to standard output (docs/headless.md). A task:\n\n"
        '  task = "Make the failing test pass."\n'
        '  backend = "http://127.0.0.1:8080"\n'
        "  [limits]\n"
        '  write = ["src/**"]                      # nothing else may be changed\n'
        '  commands = [["python", "-m", "pytest", "*"]]\n'
        "  max_lines = 40\n"
        "  [[gates]]\n"
        '  command = ["python", "-m", "pytest", "-q"]',
        examples=(
            "forge agent run task.toml",
            "forge agent run task.toml --backend local --model qwen2.5-coder-1.5b --record record.json",
            "forge agent run task.toml --resume run.jsonl",
        ),
        fill=_fill_agent,
        codes="exit codes: 0 done and all gates passed; 1 the run halted; 2 wrong usage or invalid task file;\n"
        "            3 gates failed; 4 a limit was reached (calls, tokens, seconds, cost);\n"
        "            5 a person is needed; 130 Ctrl-C, 143 SIGTERM",
    ),
    Command(
        name="doctor",
        summary="test what a server really supports",
        about="Sends a running server about a dozen short requests, explains each result, and prints a profile for\n"
        "forge run --profile (docs/doctor.md).",
        examples=(
            "forge doctor http://127.0.0.1:8080 --write server.toml",
            "forge doctor http://127.0.0.1:8080 --json > found.json",
        ),
        fill=_fill_doctor,
        codes="exit codes: 0 the server is usable, 1 it is not (the reason is printed), 2 wrong usage",
    ),
    Command(
        name="proxy",
        summary="serve a model to any OpenAI or Anthropic client, with valid tool calls",
        about="Serves the OpenAI and Anthropic APIs in front of the backend. Clients only receive tool calls that\n"
        "match their schemas: calls written as text are found, arguments are checked and coerced, and the model is\n"
        "asked to correct the rest, unseen by the client. Clients need no changes but the address (docs/proxy.md):\n\n"
        "  OPENAI_BASE_URL=http://127.0.0.1:8081/v1 YOUR-AGENT\n"
        "  ANTHROPIC_BASE_URL=http://127.0.0.1:8081 claude\n\n"
        "Each request is logged as one line: clean (as the model wrote it), repaired (a call found in text, or\n"
        "coerced), retried (valid after a correction), exhausted (never valid) or passed (nothing to judge).\n"
        "Ctrl-C waits for in-flight requests; a second one aborts them.",
        examples=(
            "forge proxy --backend http://127.0.0.1:8080",
            "forge proxy --backend local --model qwen2.5-coder-1.5b --context 16384",
            "forge proxy --backend ollama:qwen3:4b --host 0.0.0.0 --api-key-env PROXY_KEY",
        ),
        fill=_fill_proxy,
        codes="exit codes: 2 wrong usage, or nothing to serve; 130 stopped by Ctrl-C, 143 by SIGTERM",
    ),
    Command(
        name="serve",
        summary="serve durable runs over HTTP, with a web page to watch and answer them",
        about="Performs runs of these workflows and serves an HTTP API and a web page to start, read, answer and\n"
        "cancel them. Runs are stored in a database and survive restarts: interrupted runs are resumed. Without keys,\n"
        "it only listens on this machine (docs/served.md). Needs the extra `serve`. Ctrl-C waits for in-flight\n"
        "requests; a second one does not.",
        examples=(
            "forge serve examples/orders.py --backend local",
            "forge serve orders.py --backend http://127.0.0.1:8080 --database runs.db --slots 2",
            "forge serve orders.py --backend ollama:qwen3:4b --host 0.0.0.0 --key-file keys.txt",
        ),
        fill=_fill_serve,
        codes="exit codes: 2 wrong usage, or nothing to serve; 130 stopped by Ctrl-C, 143 by SIGTERM",
    ),
    Command(
        name="key",
        summary="create a key for a caller of forge serve",
        about="Prints a new key and adds its hash to the file; the key itself is not stored. Callers send it as\n"
        "Authorization: Bearer KEY. To revoke a key, remove its line: forge serve rereads the file.",
        examples=(
            "forge key ann --key-file keys.txt",
            "forge key prometheus --key-file keys.txt --scopes metrics",
        ),
        fill=_fill_key,
    ),
    Command(
        name="mcp",
        summary="serve your own workflow or agent as a tool to any MCP client",
        about="Speaks the Model Context Protocol on standard input and output. The client starts it and offers the\n"
        "workflow to its model as one tool, which takes a message. The client gets progress and can cancel;\n"
        "questions go to its user. Output printed by your file goes to standard error (docs/mcp.md). Most clients are\n"
        "configured with a JSON file like this one:\n\n"
        '  {"mcpServers": {"orders": {"command": "forge",\n'
        '    "args": ["mcp", "/path/to/flow.py:support", "--backend", "http://127.0.0.1:8080"]}}}',
        examples=(
            "forge mcp flow.py:support --backend http://127.0.0.1:8080",
            'forge mcp flow.py:support --backend local --description "Answers questions about orders."',
        ),
        fill=_fill_mcp,
        codes="exit codes: 0 the client closed the connection, 2 wrong usage, 130 Ctrl-C, 143 SIGTERM",
    ),
    Command(
        name="eval",
        summary="evaluate a model: run scenarios on it, compare, report",
        about="Runs scenarios on a model, with different data for each seed, and judges both its answers and its\n"
        "actions. Results are lines of JSON; an interrupted series continues where it stopped (docs/evals.md).",
        examples=(
            "forge eval run --backend http://127.0.0.1:8080 --runs 10 --against plain",
            "forge eval run my_scenarios.py --backend local --ablation reforged,bare",
            "forge eval list --tags plumbing",
            "forge eval report results.jsonl --html report.html",
            "forge eval check results.jsonl --against baseline.jsonl",
        ),
        fill=_fill_eval,
        codes="exit codes: 0 all runs were made, 1 the server was lost, or check found a regression,\n"
        "            2 wrong usage, or runs that could not be judged, 130 Ctrl-C, 143 SIGTERM",
    ),
    Command(
        name="models",
        summary="list, download and delete models",
        about="Lists the models that forge can download by name: size, licence, hash, source, and whether they are\n"
        "downloaded. The default action is list.",
        examples=("forge models", "forge models pull qwen2.5-coder-1.5b", "forge models remove smollm2-135m"),
        fill=_fill_models,
    ),
    Command(
        name="runs",
        summary="list recent runs; manage durable runs",
        about="Without a verb, lists the most recent journals in forge's state folder: when each run started, how it\n"
        "ended and how to resume it. The other verbs manage durable runs, which survive their process: start a run,\n"
        "perform runs, answer questions, read results (docs/served.md). They need the extra `durable`.",
        examples=(
            "forge runs",
            "forge runs --last 3 --json",
            "forge runs journals my/journals",
            'forge runs start orders.py "Report on order A-17" --id order-A-17',
            "forge runs work orders.py --backend http://127.0.0.1:8080 --until-idle",
            "forge runs list",
        ),
        fill=_fill_runs,
    ),
    Command(
        name="replay",
        summary="show a recorded run, or replay it offline state by state",
        about="Shows the contents of a journal. With a workflow, replays the run without calling models or tools, and\n"
        "checks each effect against the recorded one.",
        examples=(
            "forge replay run.jsonl",
            "forge replay run.jsonl --workflow flow.py:support --to 7",
            "forge replay run.jsonl --workflow flow.py:support --html run.html",
        ),
        fill=_fill_replay,
    ),
    Command(
        name="bisect",
        summary="find the first state in which two workflows differ",
        about="Feeds the recorded outcomes to another workflow and shows the first state that differs, field by\n"
        "field. With --workflow given twice, compares the two and names the stage that caused the difference.",
        examples=(
            "forge bisect run.jsonl --workflow new.py:support",
            "forge bisect run.jsonl --workflow old.py:support --workflow new.py:support",
        ),
        fill=_fill_bisect,
    ),
    Command(
        name="ablate",
        summary="show what each guardrail changed in a recorded run",
        about="Repeats the decision on each recorded reply with each guardrail removed in turn. Calls no model.",
        examples=("forge ablate run.jsonl --workflow flow.py:support",),
        fill=_fill_ablate,
    ),
    Command(
        name="completion",
        summary="print a shell completion script",
        about="Prints a completion script for bash, zsh or fish: commands, options, their choices and files.",
        examples=(
            "forge completion bash > ~/.local/share/bash-completion/completions/forge",
            "forge completion zsh > ~/.zfunc/_forge",
            "forge completion fish > ~/.config/fish/completions/forge.fish",
        ),
        fill=_fill_completion,
    ),
)


def parse(arguments: list[str] | None) -> argparse.Namespace:
    """The parsed command line; argparse exits with 2 and a message on wrong usage."""
    words = sys.argv[1:] if arguments is None else arguments
    return parser(next(iter(words), "")).parse_args(words)


def parser(only: str | None = None) -> Parser:
    """The parser of the command line, with the arguments of all commands or only of this one: some load modules."""
    first = tuple(example for command in COMMANDS for example in command.examples[:1])
    raw = argparse.RawDescriptionHelpFormatter
    about = "Reliable tool calls from small language models."
    top = Parser(prog="forge", description=about, epilog=_epilog(first, _EXIT_CODES), formatter_class=raw)
    top.add_argument("--version", action="version", version=VERSION, help="show forge's version and exit")
    commands = top.add_subparsers(required=True, metavar="COMMAND", dest="command_name", parser_class=Parser)
    for command in COMMANDS:
        epilog = _epilog(command.examples, command.codes)
        made = commands.add_parser(
            command.name, help=command.summary, description=command.about, epilog=epilog, formatter_class=raw
        )
        if only in (None, command.name):
            command.fill(made)
    return top


def _epilog(examples: tuple[str, ...], codes: str) -> str:
    shown = "\n".join(f"  {example}" for example in examples)
    return "\n\n".join(filter(None, (f"examples:\n{shown}", codes)))
