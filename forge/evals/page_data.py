"""What the script of a report's page works on: every run, every pair's verdict, and the timelines, as JSON."""

from collections.abc import Mapping

import msgspec

from forge.evals.report import EvalReport, Matchup
from forge.evals.report_texts import harm_claim, right_claim
from forge.evals.row import Row

TimelineSection = tuple[str, str, tuple[tuple[str, str], ...]]
"""A turn of a run: its title, a note, and its lines, each a label and a text."""

Timelines = Mapping[str, tuple[TimelineSection, ...]]
"""The timelines that a page has, by the first journal of the run."""


def page_json(report: EvalReport, timelines: Timelines) -> str:
    """The data as JSON that cannot end the element that it stands in."""
    names = list(report.scenarios)
    runs = {
        f"{number},{names.index(name)}": [_run(row) for row in cell]
        for number, column in enumerate(report.columns)
        for name, cell in column.runs.items()
    }
    made = {
        "columns": [(column.label, column.name, column.configuration.model) for column in report.columns],
        "scenarios": names,
        "runs": runs,
        "pairs": {f"{one.first},{one.second}": _matchup(one, names) for one in report.matchups},
        "timelines": timelines,
    }
    return _for_html(msgspec.json.encode(made).decode())


def _for_html(text: str) -> str:
    """The JSON without characters that mean anything in HTML; they occur only in its strings."""
    return text.replace("&", r"\u0026").replace("<", r"\u003c").replace(">", r"\u003e")


def _run(row: Row) -> dict[str, object]:
    return {
        "seed": row.seed,
        "verdict": row.verdict,
        "why": row.why,
        "end": row.end,
        "calls": row.calls,
        "ideal": row.ideal_calls,
        "retries": row.retries + row.step_nudges,
        "seconds": round(row.seconds, 2),
        "tokens": row.input_tokens + row.output_tokens,
        "journals": row.journals,
    }


def _matchup(one: Matchup, names: list[str]) -> dict[str, object]:
    each = {names.index(part.part): (part.only_first, part.only_second, part.finding) for part in one.scenarios}
    return {
        "claims": (right_claim(one), harm_claim(one)),
        "alone": one.pairing.alone,
        "scenarios": each,
    }
