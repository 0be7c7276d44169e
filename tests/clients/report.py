"""Report: the tables of benchmarks/CLIENTS.md, written from results.jsonl."""

from collections.abc import Iterable, Sequence

from tests.clients import rows
from tests.clients.rows import ROOT, Row
from tests.clients.tasks import LIMIT

PAGE = ROOT / "benchmarks/CLIENTS.md"
BEGIN, END = "<!-- clients: written by make clients -->\n", "<!-- end of clients -->\n"

SERVERS = (("chat", True), ("anthropic", True), ("ollama", True), ("chat", False))
"""The columns of the checks: the server, and whether the proxy stands before it."""


def block(found: Sequence[Row]) -> str:
    """Both tables, with when they were measured."""
    checks = [row for row in found if row.kind == "check"]
    tasks = [row for row in found if row.kind == "task"]
    return "\n".join((*_checks(checks), "", _when(checks), "", *_tasks(tasks), "", _when(tasks), ""))


def write() -> None:
    """Put them into the page, between their marks."""
    page = PAGE.read_text()
    before, rest = page.split(BEGIN)
    PAGE.write_text(f"{before}{BEGIN}\n{block(rows.read())}\n{END}{rest.split(END)[1]}")


def _checks(found: Sequence[Row]) -> list[str]:
    lines = [
        "| client | check | OpenAI | Anthropic | Ollama | OpenAI, no proxy |",
        "|---|---|---|---|---|---|",
    ]
    for client, version, check in dict.fromkeys((row.client, row.version, row.check) for row in found):
        mine = [row for row in found if (row.client, row.version, row.check) == (client, version, check)]
        cells = [_manners(mine, server, behind=behind) for server, behind in SERVERS]
        lines.append(f"| {client} {version} | {check} | {' | '.join(cells)} |")
    return lines


def _manners(mine: Iterable[Row], server: str, *, behind: bool) -> str:
    """With which of the two models it passed."""
    here = [row for row in mine if row.server.startswith(server) and row.proxy is behind]
    passed = {row.server.removeprefix(f"{server}, ") for row in here if row.passed}
    return "both" if {"right", "wrong"} <= passed else "".join(passed) or "none"


def _tasks(found: Sequence[Row]) -> list[str]:
    names = list(dict.fromkeys(row.check for row in found))
    heads = [f"{name}, {way}" for name in names for way in ("proxy", "alone")]
    lines = [f"| agent | {' | '.join((*heads, 'all, proxy', 'all, alone'))} |", "|---|" + "---:|" * (len(heads) + 2)]
    for client, version in dict.fromkeys((row.client, row.version) for row in found):
        mine = [row for row in found if (row.client, row.version) == (client, version)]
        lines.append(f"| {client} {version} | {' | '.join(_counts(mine, names))} |")
    return [*lines, f"| **all** | {' | '.join(_counts(found, names))} |"]


def _counts(found: Sequence[Row], names: Sequence[str]) -> list[str]:
    """Finished of tried: each task behind the proxy and alone, then all of them."""
    groups = [[row for row in found if row.check == name] for name in names] + [list(found)]
    return [_share([row for row in group if row.proxy is behind]) for group in groups for behind in (True, False)]


def _share(found: Sequence[Row]) -> str:
    """How many are done, of how many; and how many of the others ran out of time."""
    late = sum(row.seconds >= LIMIT for row in found if not row.passed)
    told = f" ({late} late)" if late else ""
    return f"{sum(row.passed for row in found)} of {len(found)}{told}" if found else ""


def _when(found: Sequence[Row]) -> str:
    dates, commits = sorted({row.date for row in found}), list(dict.fromkeys(row.commit for row in found))
    return f"Measured {' to '.join(dict.fromkeys((dates[0], dates[-1])))}, at {', '.join(commits)}." if found else ""


if __name__ == "__main__":
    write()
