"""Arguments of each command: flags, their checks and their help."""

import argparse
import re
from datetime import timedelta
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias, get_args

from forge.cli.parser import Parser
from forge.door.options import ACCESS, flags
from stages.options import Options
from stages.wire.sampling import DEFAULT_MAX_TOKENS

# Options shared by several commands: the backend, its model, the workflow.

_BACKEND = (
    "local (llama.cpp in this process), a server's address, NAME:MODEL or NAME:ADDRESS (docs/backends.md); "
    "llama-server:FILE starts a server"
)
_MODEL = "model: for local, a name from `forge models` or a GGUF file; otherwise the name that the server uses"
_PROFILE = "server profile: a name or a TOML file"
_KEY = "environment variable with the server's key"
_JOURNAL = "journal file to record the run in (default: a new file in the state folder)"


def add_backend(parser: argparse.ArgumentParser, *, default: str = "") -> None:
    """Options for the backend; required unless `default` says what is used without it."""
    parser.add_argument(
        "--backend",
        required=not default,
        help=_BACKEND + (f" (default: {default})" if default else ""),
    )
    parser.add_argument("--profile", help=_PROFILE)


def add_model(parser: argparse.ArgumentParser, *, sampling: bool = True) -> None:
    """Options for the model and how it is asked; without `sampling`, each request brings its own sampling options."""
    add = parser.add_argument
    add("--model", default="", help=_MODEL)
    add(
        "--mode",
        choices=("auto", "native", "prompted", "constrained"),
        default="auto",
        help="how tool calls are requested (default: what the server supports)",
    )
    add("--no-probe", dest="probe", action="store_false", help="do not probe an unknown server for what it supports")
    add(
        "--temperature",
        type=float,
        help="sampling temperature (default: 0.1; hosted and known reasoning models use their own)",
    )
    add("--context", type=_count, help="context size in tokens (default: as the server reports; local: 4096)")
    add("--timeout", type=_seconds, default=300.0, help="seconds without a byte from the server (default: %(default)g)")
    if not sampling:
        parser.set_defaults(model_sampling=False, seed=None, max_tokens=None)
        return
    add(
        "--model-sampling",
        action="store_true",
        help="use the sampling options recommended by the model's authors, if known",
    )
    add("--seed", type=int, help="sampling seed, for reproducible runs")
    add("--max-tokens", type=_count, default=DEFAULT_MAX_TOKENS, help="maximum tokens per reply (default: %(default)s)")
    add("--api-key-env", dest="backend_key_env", metavar="NAME", help=_KEY)


def _workflow(parser: Parser) -> None:
    parser.add_argument("workflow", help="FILE.py:NAME, or FILE.py if it defines only one")


def _values(parser: Parser) -> None:
    parser.add_argument(
        "--var", action="append", default=[], metavar="NAME=VALUE", help="value for {NAME} in the system prompt"
    )


def _add_telemetry(parser: argparse.ArgumentParser) -> None:
    """Options for logging and telemetry."""
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


def _add_options(parser: Parser, kind: type[Options]) -> None:
    """The flags of a group of options, with its defaults."""
    group = cache(parser.add_argument_group)
    for option, flag in sorted(flags(kind), key=lambda pair: pair[1].group == ACCESS):
        value, default = get_args(option.type)[0], option.default
        told: dict[str, Any] = {"dest": option.name, "help": flag.help, "default": default}
        if value is bool:
            told["action"] = "store_false" if default else "store_true"
        elif default == ():
            told |= {"action": "append", "default": [], "metavar": flag.metavar}
        else:
            is_path = Path in get_args(value)
            read = Path if is_path else value if value in (int, float) else str
            own = None if is_path or flag.variable else default // flag.unit if flag.unit > 1 else default
            told |= {"type": read, "default": own, "metavar": flag.metavar}
        group(flag.group).add_argument(flag.name, **told)


def _seconds(text: str) -> float:
    """The argument as seconds: more than 0, less than a day."""
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0 < number < 86400:
        raise argparse.ArgumentTypeError(
            f"{text} is not a valid number of seconds; it must be more than 0 and less than a day"
        )
    return number


def _count(text: str) -> int:
    """The argument as an integer of at least 1."""
    if not text.isdecimal() or not int(text):
        raise argparse.ArgumentTypeError(f"{text} is not a valid count; it must be an integer of at least 1")
    return int(text)


# The arguments of each command.


def fill_demo(parser: Parser) -> None:
    """Arguments of `forge demo`."""
    parser.add_argument("--order", metavar="NUMBER", help="order to report on: A-17, B-42, … (default: random)")
    parser.add_argument("--message", help="send this request instead")
    parser.set_defaults(command="forge.cli.run:run_demo", backend="local", profile=None)
    add_model(parser)
    parser.add_argument("--journal", type=Path, help=_JOURNAL)


def fill_run(parser: Parser) -> None:
    """Arguments of `forge run`."""
    _workflow(parser)
    parser.add_argument("message", help="user message")
    _values(parser)
    parser.set_defaults(command="forge.cli.run:run_workflow")
    add_backend(parser)
    add_model(parser)
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


def fill_resume(parser: Parser) -> None:
    """Arguments of `forge resume`."""
    _workflow(parser)
    parser.add_argument("journal", type=Path, help="journal of the run")
    parser.set_defaults(command="forge.cli.run:resume_workflow")
    add_backend(parser)
    add_model(parser)


def fill_chat(parser: Parser) -> None:
    """Arguments of `forge chat`."""
    add = parser.add_argument
    add("agent", nargs="?", help="your own agent: FILE.py:NAME, or FILE.py if it defines only one")
    add("--resume", nargs="?", const="", metavar="NAME", help="resume the last conversation in this folder, or NAME")
    add("--sessions", action="store_true", help="list the conversations in this folder and exit")
    add("--no-tools", dest="tools", action="store_false", help="chat without tools for the files in this folder")
    add("--no-agents-md", dest="agents_md", action="store_false", help="do not read AGENTS.md in this folder")
    parser.set_defaults(command="forge.cli.chat.conversation:run_chat")
    add_backend(parser, default="local")
    add_model(parser)
    _add_telemetry(parser)


def fill_agent(parser: Parser) -> None:
    """Arguments of `forge agent`."""
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
    add_model(parser)


def fill_doctor(parser: Parser) -> None:
    """Arguments of `forge doctor`."""
    add = parser.add_argument
    add("url", help="server address, such as http://127.0.0.1:8080")
    add("--model", default="", help="model to examine (default: the first one that the server lists)")
    add("--api-key-env", metavar="NAME", help=_KEY)
    add("--timeout", type=_seconds, default=60.0, help="maximum seconds per answer (default: %(default)g)")
    add("--write", type=Path, metavar="FILE", help="also write the profile to this TOML file")
    add("--json", action="store_true", help="print the findings as JSON and progress to standard error")
    parser.set_defaults(command="forge.cli.doctor:run_doctor")


def fill_replay(parser: Parser) -> None:
    """Arguments of `forge replay`."""
    _of_journal(parser)
    add = parser.add_argument
    add(
        "--workflow",
        metavar="FILE.py:NAME",
        help="workflow to replay with (demo: that of forge demo)",
    )
    add("--to", type=int, metavar="N", help="stop at state N and show it in full")
    add("--html", type=Path, metavar="OUT", help="write the run's timeline as an HTML page")
    parser.set_defaults(command="forge.cli.replay:run_replay")


def fill_bisect(parser: Parser) -> None:
    """Arguments of `forge bisect`."""
    _of_journal(parser)
    parser.add_argument(
        "--workflow",
        action="append",
        required=True,
        metavar="FILE.py:NAME",
        help="workflow to compare with; give it twice to compare two",
    )
    parser.set_defaults(command="forge.cli.compare:run_bisect")


def fill_ablate(parser: Parser) -> None:
    """Arguments of `forge ablate`."""
    _of_journal(parser)
    parser.add_argument(
        "--workflow", required=True, metavar="FILE.py:NAME", help="workflow that the run was recorded with"
    )
    parser.set_defaults(command="forge.cli.compare:run_ablate")


def fill_proxy(parser: Parser) -> None:
    """Arguments of `forge proxy`."""
    from forge.proxy.options import ProxyOptions  # noqa: PLC0415 - only this command needs the proxy

    add_backend(parser, default="http://127.0.0.1:8080")
    add_model(parser, sampling=False)
    parser.set_defaults(command="forge.cli.proxy:run_proxy", backend="http://127.0.0.1:8080")
    parser.add_argument(
        "--backend-api-key-env",
        dest="backend_key_env",
        metavar="NAME",
        help="environment variable with the backend's key (default: forward the client's)",
    )
    _add_options(parser, ProxyOptions)
    _add_telemetry(parser)


def fill_serve(parser: Parser) -> None:
    """Arguments of `forge serve`."""
    from forge.serve.options import ServeOptions  # noqa: PLC0415 - only this command needs the server

    parser.add_argument("workflows", nargs="+", metavar="WORKFLOW", help=_SERVED)
    _add_database(parser)
    _working(parser)
    add_backend(parser, default=_OWN)
    add_model(parser)
    _add_options(parser, ServeOptions)
    _add_telemetry(parser)
    parser.set_defaults(command="forge.cli.serve:run_serve")


def fill_key(parser: Parser) -> None:
    """Arguments of `forge key`."""
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


def fill_mcp(parser: Parser) -> None:
    """Arguments of `forge mcp`."""
    _workflow(parser)
    parser.add_argument(
        "--description", default="", help="description of the tool for clients (default: the names of its own tools)"
    )
    _values(parser)
    parser.set_defaults(command="forge.cli.mcp:run_mcp")
    add_backend(parser, default="that of the served agent")
    add_model(parser)


def fill_eval(parser: Parser) -> None:
    """Arguments of `forge eval`."""
    commands = parser.add_subparsers(required=True, metavar="COMMAND", dest="eval_command", parser_class=Parser)
    for name, summary, fill in (
        ("run", "run scenarios on a model and record each result", _fill_run),
        ("list", "list scenarios with their tags and subject", _fill_list),
        ("report", "compare configurations, as Markdown or an HTML page", _fill_report),
        ("check", "exit with 1 if results are significantly worse than a baseline", _fill_check),
    ):
        fill(commands.add_parser(name, help=summary, description=f"{summary[0].upper()}{summary[1:]}."))


def _fill_run(parser: Parser) -> None:
    # Options that are not given are left out of the namespace: a file may set them, and `EvalOptions` has defaults.
    parser.argument_default = argparse.SUPPRESS
    _scenarios(parser)
    add = parser.add_argument
    add("--backend", help=_BACKEND)
    add("--model", help=_MODEL)
    add("--profile", help=_PROFILE)
    add(
        "--temperature",
        type=float,
        help="sampling temperature (default: as recommended for the model, otherwise 0.1)",
    )
    add("--max-tokens", type=_count, help="maximum tokens per reply (default: 512)")
    add("--api-key-env", metavar="NAME", help=_KEY)
    add("--slots", type=_count, metavar="N", help="slots of a server started by forge (default: 1)")
    add("--chat-template", metavar="FILE", help="chat template, for llama-server:FILE")
    add("--context", type=_count, metavar="TOKENS", help="context size of a server that does not report it")
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
    add("--runs", type=_count, metavar="N", help="seeds for each scenario (default: 5)")
    add("--seed", type=int, metavar="FIRST", help="first seed (default: 1)")
    add("-o", "--output", metavar="FILE", help="results file (default: results.jsonl)")
    add("--timeout", type=_seconds, help="maximum seconds per run (default: 300)")
    add("--parallel", type=_count, metavar="N", help="maximum concurrent runs (default: the server's slots)")
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


def _fill_list(parser: Parser) -> None:
    _scenarios(parser)
    parser.set_defaults(command="forge.cli.eval_run:run_scenario_list")


def _fill_report(parser: Parser) -> None:
    add = parser.add_argument
    add("files", nargs="+", type=Path, metavar="FILE", help="results of forge eval run")
    add("--against", default="", metavar="NAME", help="compare this configuration with the others of the same model")
    add("--title", default="", help="title of the report (default: Evals, or the model names on a page)")
    add("--html", type=Path, metavar="OUT", help="write the report as a self-contained HTML page")
    parser.set_defaults(command="forge.cli.eval_report:run_report")


def _fill_check(parser: Parser) -> None:
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
    """Comma-separated names."""
    names = tuple(filter(None, (name.strip() for name in text.split(","))))
    if not names:
        raise argparse.ArgumentTypeError("it is empty; leave it out, or give comma-separated names")
    return names


def fill_models(parser: Parser) -> None:
    """Arguments of `forge models`."""
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


def fill_runs(parser: Parser) -> None:
    """Arguments of `forge runs`: journals without a verb, otherwise durable runs."""
    parser.set_defaults(command="forge.cli.run:run_runs", folder=None, last=10, json=False)
    verbs = parser.add_subparsers(metavar="VERB", parser_class=Parser, title="verbs")
    journals = verbs.add_parser("journals", help="list the most recent journals of forge run and forge demo (default)")
    journals.add_argument("folder", nargs="?", type=Path, help="folder with journals (default: forge's state folder)")
    last = "number of journals to show (default: 10)"
    for one in (parser, journals):  # without defaults, so that `forge runs --json journals` works too
        one.add_argument("--last", type=_count, default=argparse.SUPPRESS, metavar="N", help=last)
        one.add_argument("--json", action="store_true", default=argparse.SUPPRESS, help="print the journals as JSON")
    _durable_verbs(verbs)


def _durable_verbs(verbs: _Verbs) -> None:
    work = _verb(verbs, "work", "perform durable runs", _WORK)
    work.add_argument("workflows", nargs="+", metavar="WORKFLOW", help=_SERVED)
    _working(work)
    work.add_argument("--until-idle", action="store_true", help="exit when no run is queued or running")
    add_backend(work, default=_OWN)
    add_model(work)

    start = _verb(verbs, "start", "start a durable run and print its id", _START)
    _workflow(start)
    start.add_argument("message", help="user message")
    _values(start)
    start.add_argument("--id", help="your own id; starting the same run twice with it starts it once")
    start.add_argument("--conversation", default="", metavar="NAME", help="continue this conversation, or start it")
    start.add_argument("--priority", type=int, metavar="N", help="priority; 1 is taken first")

    listed = _verb(verbs, "list", "list durable runs, latest first")
    listed.add_argument("--last", type=_count, default=20, metavar="N", help="runs per page (default: %(default)s)")
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
    """A verb for durable runs."""
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
    add("--concurrency", type=_count, default=16, metavar="N", help="maximum concurrent runs (default: 16)")
    add(
        "--per-minute",
        type=_count,
        metavar="N",
        help="maximum runs started per minute, across all workers (default: no limit)",
    )
    add("--slots", type=_count, metavar="N", help="maximum concurrent model calls (default: no limit)")
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


def fill_completion(parser: Parser) -> None:
    """Arguments of `forge completion`."""
    parser.add_argument("shell", choices=("bash", "zsh", "fish"), help="bash, zsh or fish")
    parser.set_defaults(command="forge.cli.completion:run_completion")
