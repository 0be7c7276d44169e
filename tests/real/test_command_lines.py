"""Every command line of the pages and of `--help` is started, as far as one machine can, and ends as its page says.

`TABLE` says how: a line that is on a page and not there fails. Addresses are those of a server in this process, ports
are free ones, and the models are the two that the tests share with the user; the rest is run as it is written.
"""

import argparse
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from msgspec import Struct
from msgspec.structs import replace

from forge import Workflow, call, run_sync, tool
from forge.backends.servers.download import ensure_model, path_of
from forge.backends.servers.models import KNOWN
from forge.cli.commands import parser
from forge.cli.dispatch import run_command
from forge.interpreters.scripted import Scripted
from tests.evals.rows import AUTO, PLAIN, configuration, suite, written
from tests.page_model import playing

ROOT = Path(__file__).parents[2]
PROGRAMS = Path(sys.executable).parent
PAGES = (
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *sorted((ROOT / "docs").glob("*.md")),
    ROOT / "benchmarks/CLIENTS.md",
)
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```", re.DOTALL | re.MULTILINE)
IN_A_SENTENCE = re.compile(
    r"`((?:(?:[A-Z_]+=[^\s`]+ )+[^`]+|(?:\.venv/bin/|python -m )?forge [^`]+|make [^`]+|pip [^`]+))`"
)
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]


class Bench(Struct, frozen=True):
    """A folder with the files that a line names, and a server at `address`."""

    folder: Path
    address: str
    capsys: pytest.CaptureFixture[str]

    def here(self, line: str) -> str:
        """The line with what this machine has in the place of what it names."""
        line = re.sub(r"127\.0\.0\.1:(8080|8081|1234|4318)\b|models\.example\.com", self.address, line)
        line = line.replace("https:", "http:").replace(
            "ollama:qwen3:4b", f"ollama:http://{self.address} --model qwen3:4b"
        )
        line = line.replace("qwen2.5-coder-1.5b", "qwen2.5-coder-0.5b").replace("--host 0.0.0.0", "--host 127.0.0.1")
        line = line.replace("ADDRESS", self.address).replace("TASK.toml", "task.toml").replace("COMMAND", "doctor")
        journals = sorted(self.folder.glob("out.journals/**/order-3.jsonl"))
        return line.replace("results.journals/…/order-3.jsonl", shlex.quote(str(journals[-1]))) if journals else line


class Row(Struct, frozen=True, kw_only=True):
    """How a line is started, and how it ends.

    `more` are words that bound what would take hours, or put another model or port in the place of the line's. `first`
    are lines that come before it. `says` are in what it prints, `writes` is the file that it writes.
    """

    start: "Callable[[Bench, str, Row], None]"
    more: str = ""
    first: tuple[str, ...] = ()
    code: int = 0
    says: tuple[str, ...] = ()
    writes: str = ""
    typed: str = ""


def in_this_process(bench: Bench, line: str, row: Row) -> None:
    """The program's own main function; what stands after `>` is the shell's."""
    before, _, _ = line.partition(" > ")
    words = shlex.split(before)
    try:
        code = run_command([*words[words.index("forge") + 1 :], *shlex.split(bench.here(row.more))])
    except SystemExit as ended:  # of --help
        code = int(ended.code or 0)
    said = bench.capsys.readouterr()
    ended_so(bench, row, code, said.out + said.err)


def in_a_shell(bench: Bench, line: str, row: Row) -> None:
    done = subprocess.run(
        ["/bin/sh", "-c", f"{line} {bench.here(row.more)}"],
        input=row.typed, capture_output=True, text=True, check=False, cwd=bench.folder,
    )  # fmt: skip
    ended_so(bench, row, done.returncode, done.stdout + done.stderr)


def ended_so(bench: Bench, row: Row, code: int, said: str) -> None:
    assert code == row.code, said
    assert [words for words in row.says if words not in said] == [], said
    assert not re.search(r"^Traceback", said, re.MULTILINE), said
    if row.writes:
        assert (bench.folder / row.writes).stat().st_size


def as_a_proxy(bench: Bench, line: str, row: Row) -> None:
    """It says where it listens, answers a question of each protocol, and ends by a signal."""
    with process(bench, f"{line} --port 0", row) as proxy:
        assert proxy.stdout is not None
        said = proxy.stdout.readline()
        assert said.startswith("forge proxy: OpenAI clients http://127.0.0.1:"), proxy.communicate()
        url, headers = said.split()[-1], {"authorization": "Bearer the-key"}
        asked = {"model": "m", "messages": [{"role": "user", "content": "Hi."}], "max_tokens": 2}
        for path in ("/v1/chat/completions", "/v1/messages"):
            answer = httpx.post(url + path, json=asked, headers=headers, timeout=120, trust_env=False)
            assert answer.status_code == 200, answer.text
        proxy.send_signal(signal.SIGTERM)
        assert proxy.wait() == 143


def as_a_server_of_runs(bench: Bench, line: str, row: Row) -> None:
    """It says where it listens, takes a run unless it wants a key, and ends by a signal."""
    database = "" if "--database" in line else f" --database {bench.folder / 'serve.db'}"
    with process(bench, f"{line} --port 0{database}", row) as server:
        assert server.stdout is not None
        said = server.stdout.readline()
        assert said.startswith("forge serve: http://127.0.0.1:"), server.communicate()
        workflow = "desk" if "desk.py" in line else "orders"
        asked = {"workflow": workflow, "message": "Report on order A-17", "background": True}
        answer = httpx.post(f"{said.split()[-1]}/v1/runs", json=asked, timeout=120, trust_env=False)
        assert answer.status_code == (401 if "--key-file" in line else 202), answer.text
        server.send_signal(signal.SIGTERM)
        assert server.wait() == 143


@contextmanager
def process(bench: Bench, line: str, row: Row) -> Iterator["subprocess.Popen[str]"]:
    """A process that is ended with the block, whatever happens in it."""
    words = shlex.split(f"{line} {bench.here(row.more)}")
    with subprocess.Popen(words, cwd=bench.folder, stdin=-1, stdout=-1, stderr=-1, text=True) as running:
        try:
            yield running
        finally:
            running.kill()


def as_an_mcp_server(bench: Bench, line: str, row: Row) -> None:
    """It says its tool to a client that has said hello, and ends when that has gone."""
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "a", "version": "1"}}
    lines = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/list"},
    ]
    with process(bench, line, row) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        for sent in lines:
            server.stdin.write(json.dumps(sent) + "\n")
            server.stdin.flush()
        answers = [json.loads(server.stdout.readline()) for _ in range(2)]
        server.stdin.close()
        assert [tool["name"] for tool in answers[1]["result"]["tools"]] == [*row.says]
        assert server.wait() == 0


def by_make(bench: Bench, line: str, row: Row) -> None:
    """The target exists, and what it would run does too. The programs' own lines have rows of their own, or a test."""
    words = ["env", *shlex.split(line)]
    done = subprocess.run([*words, "--dry-run"], capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    assert [words for words in row.says if words not in done.stdout] == [], done.stdout


def by_pip(bench: Bench, line: str, row: Row) -> None:
    """It is of this folder, as no registry has it, and its extras exist. `make` itself installs it in this way."""
    match = re.fullmatch(r"\.(?:\[([\w,]+)\])?", shlex.split(line)[2])
    assert match, f"{line}: no registry has forge-toolcalls"
    assert {*(match[1] or "local").split(",")} <= EXTRAS.keys()


SMOL = "--model smollm2-135m"
"""Three times as quick to load as the default: where the line is about anything but what the model says."""
SHORT = f"{SMOL} --max-tokens 4 --temperature 0 --seed 1"
ONE = "--scenario order --runs 1 -o out.jsonl"
REFUSED = "--backend 127.0.0.1:8080/gone/v1 --journal run.jsonl"
"""With a server that refuses, so that the run is interrupted."""

runs = Row(start=in_this_process, says=("Report sent: 129.9", "done"))
resumes = Row(start=in_this_process, first=(f'forge run flow.py "Pay the invoice" {REFUSED}',), says=("Report sent",))
shows = Row(start=in_this_process, first=('forge run flow.py "Go." --backend 127.0.0.1:8080 --journal run.jsonl',))
proxies, small_proxies = Row(start=as_a_proxy), Row(start=as_a_proxy, more=SMOL)
serves = Row(start=as_a_server_of_runs, more="--grace 0.1")
talks = Row(start=in_a_shell, typed="Hi.\n", says=("you  Hi.", "answer  "))
examines = Row(start=in_this_process, says=("context: 16,384 tokens",))
reports = Row(start=in_this_process, says=("120 runs, 12 scenarios by 2 configurations",))
lists = Row(start=in_this_process)
works = Row(start=in_this_process, says=("done: Done.",))

STARTED = 'forge runs start orders.py "Report on order A-17" --id order-A-17'

TABLE: dict[str, Row] = {
    "make demo": Row(start=by_make, says=(".venv/bin/forge demo",)),
    "make test": Row(start=by_make, says=("ruff check", "mypy", "lint-imports", "pytest")),
    "make clients": Row(start=by_make, says=("-m tests.clients --runs=1",)),
    "make clients AGENTS=all RUNS=3": Row(start=by_make, says=("-m tests.clients --runs=3 all",)),
    "make soak": Row(start=by_make, says=("-m soak", "--hypothesis-profile=soak")),
    "make pages": Row(start=by_make, says=("tests/evals/page_in_chromium.py",)),
    "PICTURES=folder make pages": Row(start=by_make, says=("tests/evals/page_in_chromium.py",)),
    "make postgres": Row(start=by_make, says=("tests/memory/stores_on_postgres.py",)),
    "make bench": Row(start=by_make, says=("-m benchmarks.results",)),
    "make bench-functions": Row(start=by_make, says=("pytest benchmarks",)),
    "make bench-proxy": Row(start=by_make, says=("-m benchmarks.proxy",)),
    "make docs": Row(start=by_make, says=("docs/map.py", "docs/site.py")),
    **dict.fromkeys(
        (
            'pip install ".[local]"',
            "pip install '.[proxy,local]'",
            "pip install '.[chat,local]'",
            "pip install '.[mcp]'",
            "pip install '.[testing]'",
            "pip install '.[evals]'",
            "pip install '.[postgres]'",
            "pip install '.[serve]'",
            "pip install '.[durable]'",
            "pip install '.[otel]'",
            "pip install '.[anthropic]'",
            "pip install .",
        ),
        Row(start=by_pip),
    ),
    # runs
    'forge run orders.py "Report on order A-17" --backend http://127.0.0.1:8080': runs,
    'forge run orders.py "Report on order A-17" --backend local': replace(runs, more="--backend 127.0.0.1:8080"),
    'OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:4318 forge run orders.py "Report on order A-17" '
    "--backend http://127.0.0.1:8080 --otel": replace(runs, start=in_a_shell),
    'forge run orders.py "Report on order A-17" --backend http://127.0.0.1:8080 '
    "--log-format json 2> log.jsonl": replace(runs, start=in_a_shell, writes="log.jsonl"),
    'forge run examples/orders.py "Report on order A-17" --backend local': replace(
        runs, more="--backend 127.0.0.1:8080", says=("Report sent: 129.9 from Lisbon",)
    ),
    'forge run flow.py:support "The invoice is wrong" --backend http://127.0.0.1:8080 --var tone=friendly': runs,
    'forge run flow.py "Pay the invoice" --backend 127.0.0.1:8080': runs,
    'forge run flow.py "Pay the invoice" --backend http://127.0.0.1:8080 --journal run.jsonl': runs,
    'forge run flow.py "Report on order A-17" --backend http://127.0.0.1:8080 --profile server.toml': replace(
        runs, first=("forge doctor 127.0.0.1:8080 --write server.toml",)
    ),
    'forge run orders.py "Report on order A-17" --backend llama-server:models/qwen.gguf': runs,
    'forge run orders.py "Report on order A-17" --backend llama-server:org/repo-GGUF:Q4_K_M --context 8192': runs,
    'forge run orders.py "…" --redact send_report.password --redact get_order --redact-env SHOP_TOKEN '
    r"--redact-pattern '\d{4}-\d{4}'": replace(runs, more="--backend 127.0.0.1:8080"),
    'forge run desk.py "Please refund order A-17: the lamp is broken." --backend local --seed 1': replace(
        runs, more="--backend 127.0.0.1:8080", code=1, says=("needs a person's approval, and nobody is there to ask",)
    ),
    'forge run desk.py "Please refund order X-99." --backend local --seed 1 --journal run.jsonl': replace(
        runs, more="--backend 127.0.0.1:8080", code=1, says=("calls is spent after 5 model calls", "pending: get_order")
    ),
    # What such a run says on a model: test_runs.py.
    "forge demo": Row(start=in_this_process, more=f"{SHORT} --order A-17", code=1, says=("turn 1", "Journal: ")),
    "forge demo --order A-17 --model qwen2.5-coder-1.5b --seed 7": Row(
        start=in_this_process, more=f"{SMOL} --context 512", code=1, says=("Start the server with a larger context",)
    ),
    "forge resume flow.py run.jsonl --backend 127.0.0.1:8080": resumes,
    "forge resume flow.py run.jsonl --backend http://127.0.0.1:8080": resumes,
    "forge resume flow.py:support run.jsonl --backend http://127.0.0.1:8080": resumes,
    "forge resume demo run.jsonl --backend local --seed 7": replace(
        resumes,
        first=(f'forge run demo "Send a report on order A-17." {REFUSED} --seed 7',),
        more="--backend 127.0.0.1:8080",
    ),
    # tasks
    "forge agent run task.toml": works,
    "forge agent run TASK.toml": works,
    "forge agent run task.toml --backend local --model qwen2.5-coder-1.5b --record record.json": replace(
        works, more="--backend 127.0.0.1:8080 --model tiny", writes="record.json"
    ),
    "forge agent run task.toml --resume run.jsonl": replace(works, first=(f"forge agent run task.toml {REFUSED}",)),
    # conversations
    # Not asked anything: its tools alone are 2,000 tokens to read.
    "forge chat": replace(talks, more=SHORT, typed="", says=("tools  read_file, ",)),
    "forge chat --no-tools": replace(talks, more=SHORT),
    **dict.fromkeys(
        (
            "forge chat --backend http://127.0.0.1:8080",
            "forge chat shop.py:agent",
        ),
        talks,
    ),
    "forge chat --resume": replace(
        talks,
        first=("forge chat --backend 127.0.0.1:8080",),
        more="--backend 127.0.0.1:8080",
        typed="And?\n",
        says=("Hi.", "you  And?"),
    ),
    "forge chat --sessions": replace(talks, first=("forge chat --backend 127.0.0.1:8080",), says=("Hi.",)),
    'echo "Summarise AGENTS.md in a sentence." | forge chat --no-tools --backend http://127.0.0.1:8080': replace(
        talks, says=("you  Summarise AGENTS.md in a sentence.", "answer  ")
    ),
    # servers
    "forge proxy --backend http://127.0.0.1:8080": proxies,
    "forge proxy --backend 127.0.0.1:8080": proxies,
    "forge proxy --backend ollama:qwen3:4b": proxies,
    "forge proxy --backend ollama:qwen3:4b --host 0.0.0.0 --api-key-env PROXY_KEY": proxies,
    "forge proxy --backend local": small_proxies,
    "forge proxy --backend local --model qwen2.5-coder-1.5b --context 16384": proxies,
    "forge proxy --policy policy.toml": replace(proxies, more="--backend 127.0.0.1:8080"),
    **dict.fromkeys(
        (
            "forge mcp flow.py --backend 127.0.0.1:8080",
            "forge mcp flow.py:support --backend http://127.0.0.1:8080",
        ),
        Row(start=as_an_mcp_server, says=("support",)),
    ),
    'forge mcp flow.py:support --backend local --description "Answers questions about orders."': Row(
        start=as_an_mcp_server, more=SMOL, says=("support",)
    ),
    "forge mcp flow.py:agent": Row(start=as_an_mcp_server, says=("shop",)),
    # what a server is
    **dict.fromkeys(
        ("forge doctor http://127.0.0.1:8080", "forge doctor 127.0.0.1:8080", "forge doctor ADDRESS"),
        examines,
    ),
    "forge doctor http://127.0.0.1:1234 --model qwen2.5-7b-instruct --write server.toml": replace(
        examines, writes="server.toml"
    ),
    "forge doctor https://models.example.com/v1 --api-key-env MODELS_KEY --timeout 120": examines,
    "forge doctor http://127.0.0.1:8080 --json": replace(examines, says=('"findings"',)),
    "forge doctor http://127.0.0.1:8080 --json > found.json": replace(examines, says=('"findings"',)),
    "forge doctor http://127.0.0.1:8080 --write server.toml": replace(examines, writes="server.toml"),
    # what was recorded
    "forge runs": replace(lists, first=('forge run flow.py "Go." --backend 127.0.0.1:8080',), says=("support",)),
    "forge runs --json": replace(lists, says=("[]",)),
    "forge runs --last 3 --json": replace(lists, says=("[]",)),
    "forge runs journals my/journals": replace(lists, says=("desk",)),
    STARTED: replace(lists, says=("order-A-17",)),
    "forge runs list": replace(lists, first=(STARTED,), says=("order-A-17", "queued")),
    "forge runs work orders.py --backend http://127.0.0.1:8080 --until-idle": replace(lists, first=(STARTED,)),
    "forge serve examples/orders.py --backend local": replace(serves, more=f"{SMOL} --grace 0.1"),
    "forge serve desk.py --backend local": replace(serves, more=f"{SMOL} --grace 0.1"),
    "forge serve orders.py --backend http://127.0.0.1:8080": serves,
    "forge serve orders.py --backend http://127.0.0.1:8080 --database runs.db --slots 2": serves,
    "forge serve orders.py --backend ollama:qwen3:4b --host 0.0.0.0 --key-file keys.txt": replace(
        serves, first=("forge key ann --key-file keys.txt",)
    ),
    "forge key ann --key-file keys.txt": replace(lists, says=("forge_", "it is not shown again"), writes="keys.txt"),
    "forge key prometheus --key-file keys.txt --scopes metrics": replace(lists, says=("forge_",), writes="keys.txt"),
    "forge replay run.jsonl": replace(shows, says=("get_order",)),
    "forge replay run.jsonl --workflow orders.py": replace(shows, says=("send_report",)),
    "forge replay run.jsonl --workflow orders.py --to 7": replace(shows, says=("7",)),
    "forge replay run.jsonl --workflow orders.py --html run.html": replace(shows, writes="run.html"),
    "forge replay run.jsonl --workflow flow.py:support --to 7": replace(shows, says=("7",)),
    "forge replay run.jsonl --workflow flow.py:support --html run.html": replace(shows, writes="run.html"),
    "forge replay results.journals/…/order-3.jsonl": replace(
        lists,
        first=("forge eval run --backend 127.0.0.1:8080 --scenario order --runs 3 -o out.jsonl",),
        says=("get_order",),
    ),
    "forge bisect run.jsonl --workflow new.py:support": replace(shows, code=1, says=("differ",)),
    "forge bisect run.jsonl --workflow old.py:support --workflow new.py:support": replace(
        shows, code=1, says=("differ",)
    ),
    "forge bisect run.jsonl --workflow old.py --workflow new.py": replace(shows, code=1, says=("differ",)),
    "forge ablate run.jsonl --workflow flow.py:support": replace(shows, says=("rescue",)),
    "forge ablate run.jsonl --workflow orders.py": replace(shows, says=("rescue",)),
    # models
    **dict.fromkeys(("forge models", "forge models --json"), replace(lists, says=("smollm2-135m",))),
    "forge models pull qwen2.5-coder-1.5b": replace(lists, says=("qwen2.5-coder-0.5b",)),
    "forge models remove qwen2.5-coder-1.5b": replace(lists, says=("qwen2.5-coder-0.5b",)),
    "forge models remove smollm2-135m": replace(lists, says=("smollm2-135m",)),
    # evals
    "forge eval list": replace(lists, says=("order",)),
    "forge eval list --tags plumbing": replace(lists, says=("order",)),
    "forge eval run --backend local --runs 10": Row(
        start=in_this_process, more=f"{ONE} --backend 127.0.0.1:8080", says=("1 run",), writes="out.jsonl"
    ),
    **dict.fromkeys(
        (
            "forge eval run --backend 127.0.0.1:8080 --against plain",
            "forge eval run --backend http://127.0.0.1:8080 --runs 10 --against plain",
            "forge eval run --backend 127.0.0.1:8080 --against plain --scenario order,chain --runs 20 -o results.jsonl",
        ),
        Row(start=in_this_process, more=ONE, says=("2 runs",), writes="out.jsonl"),
    ),
    "forge eval run --suite seeds": Row(
        start=in_this_process, more="--backend 127.0.0.1:8080 --runs 1 --probe", says=("the scenarios need",)
    ),
    "forge eval run my_scenarios.py --backend 127.0.0.1:8080 --ablation reforged,no_rescue,bare": Row(
        start=in_this_process, more="--runs 1 -o out.jsonl", says=("3 runs",), writes="out.jsonl"
    ),
    "forge eval run my_scenarios.py --backend local --ablation reforged,bare": Row(
        start=in_this_process,
        more="--runs 1 -o out.jsonl --backend 127.0.0.1:8080",
        says=("2 runs",),
        writes="out.jsonl",
    ),
    "forge eval run --backend 127.0.0.1:8080 --probe": Row(start=in_this_process, says=("16,384",)),
    "forge eval run --config models.toml": Row(
        start=in_this_process, more=f"{ONE} --probe", says=("context  4,096", "context  16,384")
    ),
    **dict.fromkeys(
        (
            "forge eval report results.jsonl",
            'forge eval report results.jsonl --against "forge auto"',
        ),
        reports,
    ),
    "forge eval report results.jsonl --title Nightly": replace(reports, says=("# Nightly",)),
    "forge eval report results.jsonl --html report.html": replace(reports, says=(), writes="report.html"),
    "forge eval report results.jsonl more.jsonl --html out.html": replace(reports, says=(), writes="out.html"),
    "forge eval check results.jsonl --against baseline.jsonl": replace(lists, says=("forge auto",)),
    # the rest
    "forge --help": replace(lists, says=("forge doctor",)),
    "forge COMMAND --help": replace(lists, says=("forge doctor",)),
    "forge completion bash > forge.bash": replace(lists, says=("_forge",)),
    "forge completion bash > ~/.local/share/bash-completion/completions/forge": replace(lists, says=("_forge",)),
    "forge completion zsh > ~/.zfunc/_forge": replace(lists, says=("#compdef forge",)),
    "forge completion fish > ~/.config/fish/completions/forge.fish": replace(lists, says=("complete -c forge",)),
}

LEFT_OUT = {
    ". .venv/bin/activate": "the shell's own; the tests run in that environment",
    "OPENAI_BASE_URL=http://127.0.0.1:8081/v1 YOUR-AGENT": "a program of the reader's",
    "ANTHROPIC_BASE_URL=http://127.0.0.1:8081 claude": "a program of others, which `make clients` installs and starts",
    "ANTHROPIC_BASE_URL=http://127.0.0.1:8081 ANTHROPIC_AUTH_TOKEN=none claude": "likewise",
    "pip uninstall -y forge-guardrails forge-toolcalls": "it would take forge from under the tests",
    "python -m forge eval run benchmarks/peers/players.py --against forge-guardrails,pydantic-ai --backend …": (
        "the peers need environments of their own, which tests/real/test_peers.py has"
    ),
}
"""Lines that one machine cannot start, or must not, with the reason."""


def commands(of: argparse.ArgumentParser, name: str = "forge") -> Iterator[tuple[str, argparse.ArgumentParser]]:
    """Every command of the program, by its words."""
    yield name, of
    for action in of._actions:
        if isinstance(action, argparse._SubParsersAction):
            for word, inner in action.choices.items():
                yield from commands(inner, f"{name} {word}")


def written_lines() -> Iterator[tuple[str, str]]:
    """Where a command line stands, and the line, without its comment."""
    named = {"forge COMMAND", *(name for name, _ in commands(parser()))}
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        blocks = "".join(block for language, block in BLOCK.findall(text) if language == "sh")
        for line in blocks.splitlines():
            yield page.name, re.split(r"\s+#", line)[0]
        for line in IN_A_SENTENCE.findall(BLOCK.sub("", text)):
            if line not in named:
                yield page.name, line.removeprefix(".venv/bin/")
    for name, of in commands(parser()):
        for line in re.findall(r"^  ((?:forge|[A-Z_]+=\S+) .+)$", of.format_help(), re.MULTILINE):
            yield f"{name} --help", line


def test_every_command_line_has_a_row_and_every_row_a_command_line() -> None:
    lines: dict[str, str] = {line: where for where, line in written_lines()}
    assert {line: where for line, where in lines.items() if line not in TABLE | LEFT_OUT} == {}
    assert {*TABLE, *LEFT_OUT} - {*lines} == set()


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with playing() as address:
        yield address


def block(page: str, language: str, number: int = 0) -> str:
    text = (ROOT / page).read_text(encoding="utf-8")
    return str([code for of, code in BLOCK.findall(text) if of == language][number])


@pytest.fixture
def bench(
    line: str, address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Bench:
    folders = ("programs", "cache", "my/journals", "runs", "results.journals", "models", "src")
    for name in folders:
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    program = tmp_path / "programs" / "llama-server"
    program.write_text(f'#!/bin/sh\ncd {ROOT} && exec {sys.executable} -m tests.page_model "$@"\n')
    program.chmod(0o755)
    for name, value in {
        "PATH": f"{program.parent}:{PROGRAMS}:{os.environ['PATH']}",
        "HOME": str(tmp_path),
        "FORGE_STATE": str(tmp_path / "state"),
        "FORGE_CACHE": str(tmp_path / "cache"),
        "XDG_CACHE_HOME": str(tmp_path / "cache"),
        **dict.fromkeys(("PROXY_KEY", "MODELS_KEY", "SHOP_TOKEN"), "the-key"),
    }.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(tmp_path)
    bench = Bench(tmp_path, address, capsys)
    fill(bench, line)
    return bench


@pytest.fixture
def models_here(smol_path: Path) -> Path:
    """The folder of the user's models, with both that the lines need."""
    return ensure_model(KNOWN["qwen2.5-coder-0.5b"], folder=smol_path.parent).parent


def fill(bench: Bench, line: str) -> None:
    """The files that the pages name, out of the pages where they have them."""
    orders = block("README.md", "python")
    flow = orders.replace("workflow = ", "support = ").replace('"orders"', '"support"')
    if ":agent" in line:
        flow = block("docs/chat.md", "python")
    if "password" in line:
        orders = orders.replace("total: float)", "total: float, password: str)")
    if "--var tone" in line:
        flow = flow.replace("terminal_tool", 'system_prompt="Be {tone}.", terminal_tool')
    texts = {
        "orders.py": orders,
        "flow.py": flow,
        "old.py": flow,
        "new.py": flow.replace('required_steps=["get_order"]', 'system_prompt="Be brief."'),
        "desk.py": block("docs/tutorial.md", "python"),
        "shop.py": block("docs/chat.md", "python"),
        "my_scenarios.py": block("docs/evals.md", "python"),
        "models.toml": block("docs/evals.md", "toml"),
        "policy.toml": block("docs/policies.md", "toml"),
        "task.toml": block("docs/headless.md", "toml"),
        "src/stats.py": "def median(values):\n    return sorted(values)[len(values) / 2]\n",
        "test_stats.py": TEST,
        "models/qwen.gguf": "GGUF",
        "AGENTS.md": "Be brief.",
    }
    for name, text in texts.items():
        (bench.folder / name).write_text(bench.here(text))
    if "my/journals" in line:
        desk = Workflow("desk", tools=[route], terminal_tool="route")
        run_sync(desk, "Go.", backend=Scripted([call("route")]), journal=bench.folder / "my/journals/a.jsonl")
    if " report " in line or " check " in line:
        for name in ("results.jsonl", "baseline.jsonl"):
            written(bench.folder / name, suite(seeds=5, skills={AUTO: 0.9, PLAIN: 0.2}))
        written(bench.folder / "more.jsonl", suite(seeds=5, skills={configuration(model="another"): 0.5}))


@tool
def route() -> str:
    """Route the ticket."""
    return "billing"


TEST = """import sys, unittest
sys.path.insert(0, "src")
from stats import median

class Median(unittest.TestCase):
    def test_of_three(self):
        self.assertEqual(median([3, 1, 2]), 2)
"""


def started(bench: Bench, line: str) -> None:
    row = TABLE[line]
    for before in row.first:
        start = in_a_shell if " chat" in before or ";" in before else in_this_process
        start(bench, bench.here(before), Row(start=start, typed="Hi.\n", code=int("/gone" in before)))
    row.start(bench, bench.here(line), row)


def on_a_model(line: str) -> bool:
    row = TABLE[line]
    local = SMOL in row.more or "qwen2.5-coder-" in line or re.search(r"\bmodels( |\.toml|$)", line)
    return bool(local) and "--backend" not in row.more


@pytest.mark.parametrize("line", [line for line in TABLE if not on_a_model(line)])
def test_the_line_ends_as_its_page_says(bench: Bench, line: str) -> None:
    started(bench, line)


@pytest.mark.parametrize("line", [line for line in TABLE if on_a_model(line)])
def test_the_line_ends_as_its_page_says_on_a_model_in_this_process(bench: Bench, models_here: Path, line: str) -> None:
    kept = bench.folder / "cache" / "models"
    if "remove" in line:  # not the user's
        kept.mkdir()
        for model in KNOWN.values():
            path_of(model, kept).touch()
    else:
        kept.symlink_to(models_here)
    started(bench, line)
