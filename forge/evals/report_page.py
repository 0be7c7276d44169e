"""The report as a page: its data, its heat map, its HTML."""

import base64
import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from pathlib import Path

import msgspec
from markdown_it import MarkdownIt

from forge.errors import quantity
from forge.evals.report import Column, EvalReport, overview_lines, remarks
from forge.evals.row import Row
from forge.evals.statistics import Proportion, RunMetrics, metrics_of

# The heat map: scenarios by configurations, each cell a button with its interval.

_FILTERS = """<form class=filters aria-controls=heat>
<p><label for=by-ablation>Ablation</label><select id=by-ablation>{ablations}</select></p>
<p><label for=by-tag>Tag</label><select id=by-tag>{tags}</select></p>
<output id=shown aria-live=polite></output>
</form>
<p class=legend aria-hidden=true>right in none {scale} in all; the line: 95 % interval</p>
<div class="wide map" tabindex=0 role=region aria-label="Heat map, scrolls sideways">
<table class=heat id=heat>
<caption class=hidden>In how many of its runs each configuration was right. A cell opens its runs.</caption>
{head}
<tbody class=totals>{totals}</tbody>
<tbody id=scenarios>{body}</tbody>
</table></div>
"""

_STEPS = 10
"""Number of shades, besides the lightest."""


def _heat_map_of(report: EvalReport) -> str:
    """The heat map with its filters."""
    tags = sorted({tag for tags in report.scenarios.values() for tag in tags})
    tag_options = "".join(f"<option value={number}>{escape(tag)}</option>" for number, tag in enumerate(tags))
    return _FILTERS.format(
        ablations=_options(_ablation_of(column) for column in report.columns),
        tags="<option value=''>all</option>" + tag_options,
        scale="".join(f"<i class=q{step}></i>" for step in range(_STEPS + 1)),
        head="".join(_head(report)),
        totals=_totals(report),
        body="".join(_line(report, tags, number, name) for number, name in enumerate(report.scenarios)),
    )


def _ablation_of(column: Column) -> str:
    """The configuration's ablation, as named in the filter."""
    known = column.configuration
    return known.ablation or ("nothing off" if known.player == "forge" else "not forge")


def _whisker(share: Proportion) -> str:
    """The interval as a line, with a mark at the share itself."""
    low, high = (100 * end for end in share.interval)
    at = 100 * share.count / max(1, share.of)
    return (
        '<svg class=ci viewBox="0 0 100 8" preserveAspectRatio=none aria-hidden=true>'
        f'<rect class=range x="{low:.0f}" y=3 width="{max(2, high - low):.0f}" height=2 />'
        f'<rect class=at x="{min(97, max(0, at - 1.5)):.0f}" width=3 height=8 /></svg>'
    )


def _options(values: Iterable[str]) -> str:
    known = "".join(f'<option value="{escape(value)}">{escape(value)}</option>' for value in dict.fromkeys(values))
    return f'<option value="">all</option>{known}'


def _head(report: EvalReport) -> Iterator[str]:
    """The models, and below each its configurations."""
    yield "<thead><tr class=models><td></td>"
    for model, columns in report.models.items():
        name = escape(model)
        yield f'<th scope=colgroup colspan={len(columns)} data-model="{name}"><span>{name}</span></th>'
    yield "</tr><tr class=names><th scope=col>scenario</th>"
    for number, column in enumerate(report.columns):
        facts = f'data-model="{escape(column.configuration.model)}" data-ablation="{escape(_ablation_of(column))}"'
        yield f"<th scope=col data-col={number} {facts}>{escape(column.name)}</th>"
    yield "</tr></thead>"


def _totals(report: EvalReport) -> str:
    """The row over all scenarios."""
    cells = []
    for number, column in enumerate(report.columns):
        found = column.metrics.right
        cells.append(f"<td data-col={number} class={_shade(found)}><span>{_share(found)}</span></td>")
    return f"<tr><th scope=row>all scenarios</th>{''.join(cells)}</tr>"


def _line(report: EvalReport, tags: Sequence[str], number: int, name: str) -> str:
    """The row of a scenario."""
    cells = []
    for place, column in enumerate(report.columns):
        found = metrics_of(column.runs.get(name, ()))
        cells.append(_cell(f"{place},{number}", place, f"{name}, {column.label}", found))
    own = report.scenarios[name]
    places = " ".join(str(tags.index(tag)) for tag in own)
    heading = f"<th scope=row>{escape(name).replace('_', '_<wbr>')}<small>{escape(', '.join(own))}</small></th>"
    return f'<tr data-tags="{places}">{heading}{"".join(cells)}</tr>'


def _cell(key: str, column: int, of: str, found: RunMetrics) -> str:
    """A cell; its button opens the runs."""
    if not found.runs:
        return f"<td data-col={column} class=none><span class=hidden>not run</span></td>"
    counts = {
        "harm": found.harm.count,
        "timed out": found.timed_out,
        "unjudged": found.unjudged,
        "repeated": found.repeated,
    }
    known = {word: number for word, number in counts.items() if number}
    small = "".join(f"<em>{number} {word}</em>" for word, number in known.items())
    spoken = [f"{of}: right in {found.right}", *(f"{word} in {number}" for word, number in known.items())]
    told = escape("; ".join((*spoken, quantity(found.runs, "run"))))
    button = f'<button type=button data-runs="{key}" aria-label="{told}">{_share(found.right)}{small}</button>'
    return f"<td data-col={column} class={_shade(found.right)}>{button}</td>"


def _share(share: Proportion) -> str:
    """Counts, the interval as a line, and the interval in percent."""
    if not share.of:
        return "<b>\N{EN DASH}</b>"
    return f"<b>{share.count}/{share.of}</b>{_whisker(share)}<small>{share.percent}</small>"


def _shade(share: Proportion) -> str:
    return f"q{round(_STEPS * share.count / share.of)}" if share.of else "none"


# The data for the page's script: every run and the timelines, as JSON.

TimelineSection = tuple[str, str, tuple[tuple[str, str], ...]]
"""A turn of a run: title, note, and lines of label and text."""

Timelines = Mapping[str, tuple[TimelineSection, ...]]
"""The timelines on a page, by the first journal of the run."""


def _page_json(report: EvalReport, timelines: Timelines) -> str:
    """The data as JSON that cannot end its script element."""
    names = list(report.scenarios)
    runs = {
        f"{number},{names.index(name)}": [_run(row) for row in cell]
        for number, column in enumerate(report.columns)
        for name, cell in column.runs.items()
    }
    made = {
        "columns": [column.label for column in report.columns],
        "scenarios": names,
        "runs": runs,
        "timelines": timelines,
    }
    # These characters occur only within strings.
    text = msgspec.json.encode(made).decode()
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


# The report as one HTML page: its Markdown, with a heat map in place of the tables of scenarios, whose cells open their
# runs.
#
# It needs no network and runs only its own script: everything from models and files is text, and the page's policy
# contains the hash of its one script and its one style.

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
<main>
<section>{overview}</section>
<section id="map" aria-labelledby="map-h"><h2 id="map-h">Scenarios</h2>
<p id="plain">Without JavaScript the tables are complete; filters and runs need it.</p>
{heat_map}</section>
<section>{remarks}</section>
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

_markdown = MarkdownIt("commonmark", {"html": False}).enable("table")


def _rendered(lines: Iterable[str]) -> str:
    """The Markdown as HTML. Tables are named after their model, the heading before, and rows after their first cell."""
    tokens = _markdown.parse("\n".join(lines))
    heading, first = "", False
    for place, token in enumerate(tokens):
        # The page's policy forbids style attributes, with which columns would be aligned.
        match token.type:
            case "heading_open":
                heading = "".join(part.content for part in tokens[place + 1].children or ())
            case "table_open":
                token.tag = "div"  # which a wide table scrolls in
                label = f"Metrics of {heading}"
                token.attrs = {"class": "wide", "tabindex": 0, "role": "region", "aria-label": label}
            case "tr_open":
                first = True
            case "th_open":
                token.attrs = {"scope": "col"}
            case "td_open":
                token.attrs = {"scope": "row"} if first else {}
                token.tag = tokens[place + 2].tag = "th" if first else "td"
                first = False
    html: str = _markdown.renderer.render(tokens, _markdown.options, {})
    return html.replace("<thead>", "<table class=metrics><thead>").replace("</table>", "</table></div>")


def page_of(report: EvalReport, timelines: Timelines, title: str = "Evals") -> str:
    """The page. `timelines` are those to show, by the first journal of the run."""
    style, script = (_FOLDER.joinpath(name).read_text(encoding="utf-8") for name in ("report.css", "report.js"))
    policy = f"default-src 'none'; style-src {_source(style)}; script-src {_source(script)}; base-uri 'none'; "
    return _PAGE.format(
        policy=policy + "form-action 'none'",
        title=escape(title),
        style=style,
        script=script,
        overview=_rendered(overview_lines(report, title)),
        heat_map=_heat_map_of(report),
        remarks=_rendered(remarks(report)),
        data=_page_json(report, timelines),
    )


def _source(text: str) -> str:
    """The hash of an inline text, as a source in a content security policy."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
