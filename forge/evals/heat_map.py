"""The heat map of a report's page: a table of scenarios by configurations, each cell a button with its interval."""

from collections.abc import Iterable, Iterator, Sequence
from html import escape

from forge.errors import quantity
from forge.evals.metrics import Metrics, metrics_of
from forge.evals.proportion import Proportion
from forge.evals.report import Column, EvalReport
from forge.evals.report_texts import by_model

_FILTERS = """<form class=filters aria-controls=heat>
<p><label for=by-model>Model</label><select id=by-model>{models}</select></p>
<p><label for=by-ablation>Ablation</label><select id=by-ablation>{ablations}</select></p>
<p><label for=by-tag>Tag</label><select id=by-tag>{tags}</select></p>
<p><label for=order>Order</label><select id=order>
<option value=tag>by tag</option><option value=hard>hardest first</option></select></p>
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
"""Shades of the map, and one more."""


def heat_map_of(report: EvalReport) -> str:
    """The map with its filters."""
    tags = sorted({tag for tags in report.scenarios.values() for tag in tags})
    return _FILTERS.format(
        models=_options(column.configuration.model for column in report.columns),
        ablations=_options(ablation_of(column) for column in report.columns),
        tags="<option value=''>all</option>" + "".join(map(_tag_option, range(len(tags)), tags)),
        scale="".join(f"<i class=q{step}></i>" for step in range(_STEPS + 1)),
        head="".join(_head(report)),
        totals=_totals(report, None) + "".join(_totals(report, (number, tag)) for number, tag in enumerate(tags)),
        body="".join(_line(report, tags, number, name) for number, name in enumerate(report.scenarios)),
    )


def ablation_of(column: Column) -> str:
    """What is off in the configuration, as the filter names it."""
    known = column.configuration
    return known.ablation or ("nothing off" if known.player == "forge" else "not forge")


def whisker(share: Proportion) -> str:
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
    for model, columns in by_model(report):
        name = escape(model)
        yield f'<th scope=colgroup colspan={len(columns)} data-model="{name}"><span>{name}</span></th>'
    yield "</tr><tr class=names><th scope=col>scenario</th>"
    for number, column in enumerate(report.columns):
        facts = f'data-model="{escape(column.configuration.model)}" data-ablation="{escape(ablation_of(column))}"'
        yield f"<th scope=col data-col={number} {facts}>{escape(column.name)}</th>"
    yield "</tr></thead>"


def _totals(report: EvalReport, tag: tuple[int, str] | None) -> str:
    """The row over all scenarios, or over those with that tag, which is hidden until it is asked for."""
    cells = []
    for number, column in enumerate(report.columns):
        counted = (cell for name, cell in column.runs.items() if tag is None or tag[1] in report.scenarios[name])
        found = metrics_of(row for cell in counted for row in cell).right
        cells.append(f"<td data-col={number} class={_shade(found)}><span>{_share(found)}</span></td>")
    place, heading = ("", "all scenarios") if tag is None else (str(tag[0]), f"with the tag {tag[1]}")
    hidden = "" if tag is None else " hidden"
    return f'<tr data-total="{place}"{hidden}><th scope=row>{escape(heading)}</th>{"".join(cells)}</tr>'


def _line(report: EvalReport, tags: Sequence[str], number: int, name: str) -> str:
    """The row of a scenario."""
    cells, shares = [], []
    for place, column in enumerate(report.columns):
        found = metrics_of(column.runs.get(name, ()))
        cells.append(_cell(f"{place},{number}", place, f"{name}, {column.label}", found))
        shares += [found.right.count / found.right.of] if found.right.of else []
    ease = sum(shares) / len(shares) if shares else 0.0
    own = report.scenarios[name]
    places = " ".join(str(tags.index(tag)) for tag in own)
    heading = f"<th scope=row>{escape(name).replace('_', '_<wbr>')}<small>{escape(', '.join(own))}</small></th>"
    return f'<tr data-tags="{places}" data-ease={ease:.3f} data-place={number}>{heading}{"".join(cells)}</tr>'


def _cell(key: str, column: int, of: str, found: Metrics) -> str:
    """A cell of the map; its button opens the runs."""
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
    return f"<b>{share.count}/{share.of}</b>{whisker(share)}<small>{share.percent}</small>"


def _shade(share: Proportion) -> str:
    return f"q{round(_STEPS * share.count / share.of)}" if share.of else "none"


def _tag_option(number: int, tag: str) -> str:
    return f"<option value={number}>{escape(tag)}</option>"
