"""The tables of clients in docs/proxy.md."""

from tests.clients import report, rows


def test_they_say_what_was_run() -> None:
    found = rows.read()
    page = report.PAGE.read_text()
    assert f"{report.BEGIN}\n{report.block(found)}\n{report.END}" in page, (
        "run: .venv/bin/python -m tests.clients.report"
    )
    checks = [row for row in found if row.kind == "check"]
    assert len({(row.client, row.check) for row in checks}) == 11
    assert all(row.passed for row in checks if row.proxy)
