"""A recorded run as one HTML page: its timeline, turn by turn, without scripts or network access."""

import os
import re
import tempfile
from collections.abc import Iterable
from html import escape
from pathlib import Path

from forge.cli.plain import readable
from forge.cli.timelines import Item, Section, timeline
from forge.errors import ForgeError
from forge.journal.records import Journal
from forge.journal.replaying import Step

_LONGEST = 20_000
"""Maximum characters of one text on the page."""

_FOLDED = 600
"""A text with more characters, or at least `_LINES` lines, is folded."""
_LINES = 12
_HEAD = 160
"""Characters of a folded text that remain visible."""

_STYLE = """
:root{color-scheme:light dark;--text:#222;--back:#fff;--dim:#666;--line:#ccc;--bar:#eee;--fill:#4a7fb5;--full:#c0392b;
--warn:#9a5200;--good:#1b6e2f;--bad:#b00020;--run:#0b5e80;--aside:#7b2d8b;--unknown:#fff3d6}
@media(prefers-color-scheme:dark){:root{--text:#ddd;--back:#181818;--dim:#999;--line:#444;--bar:#333;--warn:#e0a04a;
--good:#6fce85;--bad:#ff7b8a;--run:#6fc1e0;--aside:#d08be0;--unknown:#4a3a10}}
body{font:15px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color:var(--text);
background:var(--back)}
h1{font-size:1.4rem;margin:0;overflow-wrap:anywhere}p.facts{color:var(--dim);margin:.2rem 0 .6rem}
p.end{border-left:3px solid;padding:.3rem .8rem;margin:0 0 .6rem;white-space:pre-wrap;overflow-wrap:anywhere}
section{border-left:3px solid var(--line);padding:.2rem 0 .2rem 1rem;margin:1rem 0}
h2{font-size:1rem;margin:0 0 .4rem}h2 small{font-weight:normal;color:var(--dim)}
.bar{height:.5rem;background:var(--bar);margin:.2rem 0 .6rem}.bar div{height:100%;background:var(--fill)}
.bar .full{background:var(--full)}dl{display:grid;grid-template-columns:6rem minmax(0,1fr);gap:.15rem .8rem;margin:0}
dt{color:var(--dim);text-align:right}dd{margin:0;white-space:pre-wrap;overflow-wrap:anywhere;unicode-bidi:isolate;
font:13px/1.5 ui-monospace,monospace}summary{cursor:pointer}summary i{color:var(--dim)}
.model,.tools,.note,.called{color:var(--dim)}.nudge,.warning,.failed{color:var(--warn)}.result,.done{color:var(--good)}
.halted{color:var(--bad)}.runs{color:var(--run)}.compact,.summary,.approval{color:var(--aside)}
.thought{color:var(--dim);font-style:italic}.interrupted,.resumed,.unknown{color:var(--warn);font-weight:bold}
.unknown{background:var(--unknown)}dd.interrupted,dd.resumed{border-top:2px dashed}
@media(max-width:40rem){body{margin:1rem auto}section{padding-left:.6rem}dl{grid-template-columns:minmax(0,1fr);gap:0}
dt{text-align:left;margin-top:.4rem}}
"""

_DOCTYPE = b"<!doctype html>"

_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>{title}</title><style>{style}</style></head>
<body><h1>{title}</h1><p class="facts">{facts}</p>
{end}
{sections}
</body></html>
"""


def page(journal: Journal, steps: Iterable[Step]) -> str:
    """The page. What models, tools and users said is shown as text only; paths of this machine are removed."""
    made, header = timeline(journal, steps), journal.header
    setup = header.setup
    facts = (setup.model, setup.mode, f"{setup.context_tokens:,} tokens of context", header.started, *made.facts)
    unknown = (Item("unknown", f"outcome unknown: {call}") for call in made.unknown)
    return _PAGE.format(
        title=_text(header.workflow),
        style=_STYLE,
        facts=_text(" · ".join(filter(None, facts))),
        end="\n".join(f'<p class="end {_class(item)}">{_text(_headline(item))}</p>' for item in (made.end, *unknown)),
        sections="\n".join(map(_section, made.sections)),
    )


def save_page(path: Path, content: str) -> None:
    """Write a page that only its owner may read: like a journal, it holds everything that was said.

    ForgeError if that is not possible, or would replace something else than a page.
    """
    try:
        if path.exists() and not _replaceable(path):
            raise ForgeError(f"{path} is there already, and is not a page; name another file for it")
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
            file.write(content)
    except OSError as error:
        raise ForgeError(f"cannot write the page {path}: {error.strerror}") from None


def _replaceable(path: Path) -> bool:
    """Whether it is a page, empty, or nothing that has a content, such as /dev/null."""
    if not path.is_file():
        return True
    with path.open("rb") as file:
        first = file.read(len(_DOCTYPE))
    return first.lower() in (b"", _DOCTYPE)


def _headline(item: Item) -> str:
    return item.text if item.label == "unknown" else f"{item.label}: {item.text}"


def _class(item: Item) -> str:
    """The first word of the label, which is forge's own."""
    return item.label.partition(" ")[0]


def _section(section: Section) -> str:
    rows = "".join(map(_row, section.items))
    share = min(100, 100 * section.tokens // section.room) if section.room else 0
    full = ' class="full"' if share >= 90 else ""
    bar = f'<div class="bar"><div{full} style="width:{share}%"></div></div>' if section.room else ""
    return f"<section><h2>{section.title} <small>{section.note}</small></h2>{bar}<dl>{rows}</dl></section>"


def _row(item: Item) -> str:
    text = _text(item.text)
    if len(item.text) > _FOLDED or item.text.count("\n") >= _LINES:
        head = _text(" ".join(item.text[: 4 * _HEAD].split())[:_HEAD])
        text = f"<details><summary>{head}… <i>{len(item.text):,} characters</i></summary>{text}</details>"
    return f'<dt>{item.label}</dt><dd class="{_class(item)}">{text}</dd>'


def _text(text: str) -> str:
    """The text escaped for HTML, shortened, with control characters made visible."""
    cut = text if len(text) <= _LONGEST else f"{text[:_LONGEST]}… ({len(text) - _LONGEST} characters more)"
    return escape(readable(without_folders(cut)))


_HOMES = re.compile(
    r"(?:/home/[\w.-]{1,64}|/Users/[\w.-]{1,64}|/root|[A-Za-z]:\\{1,2}Users\\{1,2}[\w.-]{1,64})(?![\w.-])"
)
"""Home folders of any machine: pages are shared, and user names are private."""


def without_folders(text: str) -> str:
    """The text without the paths of the home, working and temporary folders."""
    for folder, name in ((Path.cwd(), "."), (Path.home(), "~"), (Path(tempfile.gettempdir()), "…")):
        if len(folder.parts) > 1:
            text = re.sub(re.escape(str(folder)) + r"(?![\w.-])", name, text)
    return _HOMES.sub("~", text)
