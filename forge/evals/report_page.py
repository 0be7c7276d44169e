"""A report as one HTML page: claims, metrics, a heat map whose cells open their runs, two configurations side by side.

It needs no network, and runs no script but its own: what models and files said is text, and the page's policy names
the hash of the one script and the one style that it has.
"""

import base64
import hashlib
from collections.abc import Iterator
from html import escape
from pathlib import Path

from forge.evals.heat_map import heat_map_of, whisker
from forge.evals.page_data import Timelines, page_json
from forge.evals.report import EvalReport
from forge.evals.report_notes import few_seeds, method, notes
from forge.evals.report_texts import (
    HEADINGS,
    Conclusion,
    by_model,
    claims,
    facts,
    metric_texts,
    told_metrics,
)

_FOLDER = Path(__file__).parent / "page"

_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
<a class="skip" href="#map">To the heat map</a>
<header><h1>{title}</h1><p>{facts}</p>
<p id="plain">Without JavaScript the tables are complete; filters, runs and pairs need it.</p></header>
<main>
{sections}
</main>
<dialog id="runs" aria-labelledby="runs-title">
<form method="dialog"><h2 id="runs-title"></h2><button aria-label="Close" autofocus>&#215;</button></form>
<div id="runs-list"></div>
</dialog>
<script type="application/json" id="data">{data}</script>
<script>{script}</script>
</body>
</html>
"""

_COLON = "<span class=hidden>:</span>"
"""Between a headline and what follows it on the next line, for those who hear it."""

_FIRST_HEADS = (
    "<th scope=col>configuration</th>"
    "<th scope=col class=plot><span>0</span><span class=hidden>right, as a line</span><span>100 %</span></th>"
)
"""The headings of the first columns of metrics; those of the others are their names."""

_SIGNS = {"better": "\N{BLACK UP-POINTING TRIANGLE}", "worse": "\N{BLACK DOWN-POINTING TRIANGLE}"}


def page_of(report: EvalReport, timelines: Timelines, title: str = "Evals") -> str:
    """The page. `timelines` has those runs' that are shown in it, by the first of their journals."""
    style, script = (_FOLDER.joinpath(name).read_text(encoding="utf-8") for name in ("report.css", "report.js"))
    policy = f"default-src 'none'; style-src {_source(style)}; script-src {_source(script)}; base-uri 'none'; "
    return _PAGE.format(
        policy=policy + "form-action 'none'",
        title=escape(title),
        style=style,
        script=script,
        facts=escape(facts(report)),
        sections="\n".join(_sections(report)),
        data=page_json(report, timelines),
    )


def _source(text: str) -> str:
    """What a policy calls an inline text: its hash."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _sections(report: EvalReport) -> Iterator[str]:
    few = few_seeds(report)
    yield _section("claims", "What may be claimed", "".join(_claims(report)))
    yield _section("metrics", "Configurations", "".join(_metrics(report)))
    yield _section("map", "Scenarios", heat_map_of(report) + (f"<p>{escape(few)}</p>" if few else ""))
    yield _section("pair", "Two side by side", _pair(report))
    yield _section("notes", "How to read this", "".join(_notes(report)))


def _section(name: str, heading: str, content: str) -> str:
    return f'<section id="{name}" aria-labelledby="{name}-h"><h2 id="{name}-h">{heading}</h2>\n{content}</section>'


def _claims(report: EvalReport) -> Iterator[str]:
    for model, told in claims(report):
        yield f"<h3>{escape(model)}</h3><ul class=claims>"
        for claim in told:
            kind = claim.finding.partition(" ")[0]
            sign = f"<span class=sign aria-hidden=true>{_SIGNS.get(kind, '=')}</span>"
            text = f"<p><b>{escape(claim.headline)}{_COLON}</b> {escape(claim.grounds)}</p>"
            yield f"<li class={kind}>{sign}{text}{_split(claim) if claim.grounds else ''}</li>"
        yield "</ul>"


def _split(claim: Conclusion) -> str:
    """A bar to the right for the pairs that speak for the first side, one to the left for those of the second."""
    left, right = 50 * claim.only_second, 50 * claim.only_first
    return (
        '<svg class=split viewBox="0 0 100 10" preserveAspectRatio=none aria-hidden=true>'
        f'<rect class=second x="{50 - left:.1f}" y=1 width="{left:.1f}" height=8 />'
        f'<rect class=first x=50 y=1 width="{right:.1f}" height=8 />'
        "<rect class=middle x=49.7 width=.6 height=10 /></svg>"
    )


def _pair(report: EvalReport) -> str:
    options = "".join(
        f'<option value="{number}">{escape(column.label)}</option>' for number, column in enumerate(report.columns)
    )
    return (
        "<form class=filters id=pair-form aria-controls=pair-out>"
        f"<p><label for=first>First</label><select id=first>{options}</select></p>"
        f"<p><label for=second>Second</label><select id=second>{options}</select></p></form>"
        "<div id=pair-out aria-live=polite></div>"
    )


def _metrics(report: EvalReport) -> Iterator[str]:
    told = told_metrics(report)
    heads = "".join(f'<th scope=col title="{escape(HEADINGS[one][1])}">{HEADINGS[one][0]}</th>' for one in told)
    for model, columns in by_model(report):
        yield f'<div class=wide tabindex=0 role=region aria-label="Metrics of {escape(model)}"><table class=metrics>'
        yield f"<caption>{escape(model)}</caption><thead><tr>{_FIRST_HEADS}{heads}</tr></thead>"
        yield "<tbody>"
        for _, column in columns:
            texts = metric_texts(column.metrics)
            cells = "".join(f"<td>{_broken(texts[one])}</td>" for one in told)
            plot = f"<td class=plot>{whisker(column.metrics.right)}</td>"
            yield f"<tr><th scope=row>{escape(column.name)}</th>{plot}{cells}</tr>"
        yield "</tbody></table></div>"
    meanings = "".join(f"<dt>{HEADINGS[one][0]}</dt><dd>{escape(HEADINGS[one][1])}</dd>" for one in told)
    yield f"<details><summary>What the columns mean</summary><dl class=meanings>{meanings}</dl></details>"


def _broken(text: str) -> str:
    """A metric with its interval on a line of its own."""
    count, comma, interval = escape(text).partition(", ")
    return f"{count}{comma and '<small>'}{interval}{comma and '</small>'}"


def _notes(report: EvalReport) -> Iterator[str]:
    yield f"<p>{escape(method(report))}</p>"
    yield (
        "<p>A claim needs pairs that differ: runs in which both sides were right, or both wrong, say nothing about "
        "which is better. “No difference shown” is not “no difference”: the sentence says how many more runs would "
        "tell. One cell of the map holds few runs; its interval says how little they say.</p>"
    )
    if told := [f"<li>{escape(note)}.</li>" for note in notes(report)]:
        yield f"<h3>Left out, or to be known</h3><ul>{''.join(told)}</ul>"
