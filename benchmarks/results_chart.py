"""Charts of lines on two logarithmic axes, as SVG: readable on light and on dark backgrounds."""

from collections.abc import Iterable, Sequence
from html import escape
from math import ceil, floor, log10

from msgspec import Struct

WIDTH, HEIGHT = 580, 400
LEFT, RIGHT, TOP, BOTTOM = 62, 165, 58, 54

STYLE = """
svg { font: 13px system-ui, sans-serif; }
.paper { fill: #ffffff; } .text { fill: #1f2328; } .faint { fill: #59636e; } .grid { stroke: #d1d9e0; }
.a { stroke: #0969da; fill: #0969da; } .b { stroke: #bc4c00; fill: #bc4c00; } .c { stroke: #1a7f37; fill: #1a7f37; }
.d { stroke: #8250df; fill: #8250df; } .band { fill: #818b98; fill-opacity: 0.3; }
path { fill: none !important; stroke-width: 2.5; } .dashed { stroke-dasharray: 6 4; } text { stroke: none !important; }
@media (prefers-color-scheme: dark) {
  .paper { fill: #0d1117; } .text { fill: #f0f6fc; } .faint { fill: #9198a1; } .grid { stroke: #3d444d; }
  .a { stroke: #4493f8; fill: #4493f8; } .b { stroke: #f0883e; fill: #f0883e; } .c { stroke: #3fb950; fill: #3fb950; }
  .d { stroke: #ab7df8; fill: #ab7df8; }
}
""".strip()

Points = dict[int, float]


class Line(Struct, frozen=True, kw_only=True):
    """One line with the name that stands at its end. `look` is a class of the style: a, b, c or d."""

    name: str
    points: Points
    look: str
    dashed: bool = False


class Band(Struct, frozen=True, kw_only=True):
    """The room between the least and the most of several lines; `names` are written under each other beside it."""

    names: Sequence[str]
    low: Points
    high: Points


class Panel(Struct, frozen=True, kw_only=True):
    """One pair of axes and what is drawn on it."""

    title: str
    across: str
    up: str
    lines: Sequence[Line]
    bands: Sequence[Band] = ()


class Scale(Struct, frozen=True, kw_only=True):
    """From values to places in a panel: whole decades on both axes."""

    x: tuple[int, int]
    y: tuple[int, int]

    def across(self, value: float) -> float:
        low, high = self.x
        return LEFT + (log10(value) - low) / (high - low) * (WIDTH - LEFT - RIGHT)

    def up(self, value: float) -> float:
        # A little room below, so that what lies on the lowest decade stays clear of the marks.
        low, high = self.y[0] - 0.15, self.y[1]
        return HEIGHT - BOTTOM - (log10(value) - low) / (high - low) * (HEIGHT - TOP - BOTTOM)

    def place(self, x: float, y: float) -> str:
        return f"{self.across(x):.1f},{self.up(y):.1f}"


def chart(title: str, panels: Sequence[Panel]) -> str:
    """The panels side by side, as one SVG document."""
    size = f'viewBox="0 0 {WIDTH * len(panels)} {HEIGHT}"'
    drawn = "\n".join(f'<g transform="translate({n * WIDTH} 0)">\n{_panel(p)}\n</g>' for n, p in enumerate(panels))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" aria-label="{escape(title)}">\n'
        f"<title>{escape(title)}</title>\n<style>\n{STYLE}\n</style>\n"
        f'<rect class="paper" width="100%" height="100%" rx="6"/>\n{drawn}\n</svg>\n'
    )


def _panel(panel: Panel) -> str:
    scale = _scale(panel)
    middle = (LEFT + WIDTH - RIGHT) / 2
    up = f"translate(16 {(TOP + HEIGHT - BOTTOM) / 2}) rotate(-90)"
    return "\n".join(
        (
            f'<text class="text" x="{LEFT}" y="28" font-size="15" font-weight="600">{escape(panel.title)}</text>',
            f'<text class="faint" x="{middle}" y="{HEIGHT - 14}" text-anchor="middle">{escape(panel.across)}</text>',
            f'<text class="faint" transform="{up}" text-anchor="middle">{escape(panel.up)}</text>',
            *_grid(scale, sorted({x for line in panel.lines for x in line.points})),
            *(_band(scale, band) for band in panel.bands),
            *(_line(scale, line) for line in panel.lines),
            *_names(scale, panel),
        )
    )


def _scale(panel: Panel) -> Scale:
    points = [line.points for line in panel.lines]
    points += [side for band in panel.bands for side in (band.low, band.high)]
    xs, ys = [x for p in points for x in p], [y for p in points for y in p.values()]
    return Scale(x=_decades(xs), y=_decades(ys))


def _decades(values: Iterable[float]) -> tuple[int, int]:
    logs = [log10(value) for value in values]
    low, high = floor(min(logs)), ceil(max(logs))
    return low, max(high, low + 1)


def _grid(scale: Scale, marks: Sequence[int]) -> list[str]:
    """A line for each decade up the panel, a mark for each value that was measured across it."""
    bottom, end = HEIGHT - BOTTOM, WIDTH - RIGHT
    drawn = []
    for power in range(scale.y[0], scale.y[1] + 1):
        y = scale.up(10.0**power)
        drawn.append(f'<line class="grid" x1="{LEFT}" x2="{end}" y1="{y:.1f}" y2="{y:.1f}"/>')
        drawn.append(f'<text class="faint" x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{10.0**power:,g}</text>')
    for mark in marks:
        x = scale.across(mark)
        drawn.append(f'<line class="grid" x1="{x:.1f}" x2="{x:.1f}" y1="{TOP}" y2="{bottom}"/>')
        drawn.append(f'<text class="faint" x="{x:.1f}" y="{bottom + 18}" text-anchor="middle">{mark:,}</text>')
    return drawn


def _line(scale: Scale, line: Line) -> str:
    path = " L".join(scale.place(x, y) for x, y in sorted(line.points.items()))
    dots = (
        f'<circle class="{line.look}" cx="{scale.across(x):.1f}" cy="{scale.up(y):.1f}" r="3.5"/>'
        for x, y in line.points.items()
    )
    return f'<path class="{line.look}{" dashed" * line.dashed}" d="M{path}"/>{"".join(dots)}'


def _band(scale: Scale, band: Band) -> str:
    there = [scale.place(x, y) for x, y in sorted(band.high.items())]
    back = [scale.place(x, y) for x, y in sorted(band.low.items(), reverse=True)]
    return f'<polygon class="band" points="{" ".join(there + back)}"/>'


def _names(scale: Scale, panel: Panel) -> list[str]:
    """The names at the right, each as near to its line's end as the others leave room."""
    ends: list[tuple[float, Sequence[str], str]] = [
        (scale.up(line.points[max(line.points)]), (line.name,), line.look) for line in panel.lines
    ]
    ends += [(scale.up(band.high[max(band.high)]), band.names, "faint") for band in panel.bands]
    drawn = []
    free = 0.0
    for y, names, look in sorted(ends, key=lambda end: end[0]):
        first = max(y, free)
        for n, name in enumerate(names):
            at = first + 4 + n * 15
            drawn.append(f'<text class="{look}" x="{WIDTH - RIGHT + 10}" y="{at:.1f}">{escape(name)}</text>')
        free = first + 15 * len(names)
    return drawn
