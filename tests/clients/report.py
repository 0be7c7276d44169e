"""Report: the table of benchmarks/CLIENTS.md, written from results.jsonl."""

from collections.abc import Iterable, Sequence

from tests.clients import rows
from tests.clients.rows import ROOT, Row

PAGE = ROOT / "benchmarks/CLIENTS.md"
BEGIN, END = "<!-- clients: written by make clients -->\n", "<!-- end of clients -->\n"

SERVERS = (("chat", True), ("anthropic", True), ("ollama", True), ("chat", False))
"""The columns of the checks: the server, and whether the proxy stands before it."""


def block(found: Sequence[Row]) -> str:
    """The table, with when it was measured."""
    return "\n".join((*_checks(found), "", _when(found), ""))


def write() -> None:
    """Put it into the page, between its marks."""
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


def _when(found: Sequence[Row]) -> str:
    dates, commits = sorted({row.date for row in found}), list(dict.fromkeys(row.commit for row in found))
    return f"Measured {' to '.join(dict.fromkeys((dates[0], dates[-1])))}, at {', '.join(commits)}." if found else ""


if __name__ == "__main__":
    write()
