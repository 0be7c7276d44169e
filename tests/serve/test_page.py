"""The page of `forge serve`, as files: complete, nothing inline, nothing from elsewhere. `make pages` opens it."""

import re
from html.parser import HTMLParser
from importlib.resources import files
from typing import get_args

from stages.events import Event, Notice
from stages.wire.deltas import Delta

PAGE = files("forge.serve") / "page"
HTML = (PAGE / "index.html").read_text(encoding="utf-8")
FILES = {file.name: file.read_text(encoding="utf-8") for file in PAGE.iterdir()}
SCRIPTS = {name: text for name, text in FILES.items() if name.endswith(".js")}


class Elements(HTMLParser):
    """The start tags of a page, with their attributes."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(HTML)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))


ELEMENTS = Elements().found
IDS = [value for _, attributes in ELEMENTS if (value := attributes.get("id"))]


def test_every_id_that_is_used_is_on_the_page_once() -> None:
    assert len(IDS) == len(set(IDS))
    used = {name for script in SCRIPTS.values() for name in re.findall(r'\bby\("([^"]+)"\)', script)}
    assert used
    assert used <= set(IDS)
    named = ("for", "aria-labelledby", "aria-describedby")
    assert {attributes[name] for _, attributes in ELEMENTS for name in named if name in attributes} <= set(IDS)
    styled = set(re.findall(r"#([a-z][a-z-]*)\b(?=[^;{}]*\{)", FILES["style.css"]))
    assert styled <= set(IDS)


def test_every_event_of_the_api_is_shown() -> None:
    shown = FILES["timeline.js"].partition("#heard = {")[2].partition("\n  };")[0]
    heard = set(re.findall(r"^    (\w+): ", shown, re.MULTILINE))
    kinds = (*get_args(Event), *get_args(Delta))
    told, notices = ({str(kind.__struct_config__.tag) for kind in some} for some in (kinds, get_args(Notice)))
    elsewhere = {"run_started", "message_added", "ended"}  # `state` has the message; callers do not see the others
    assert told - elsewhere - notices <= heard <= told


def test_every_control_has_a_label() -> None:
    labelled = {attributes["for"] for tag, attributes in ELEMENTS if tag == "label"}
    controls = {attributes.get("id") for tag, attributes in ELEMENTS if tag in {"input", "select", "textarea"}}
    assert controls <= labelled


def test_nothing_is_inline_and_nothing_comes_from_elsewhere() -> None:
    scripts = [attributes.get("src") for tag, attributes in ELEMENTS if tag == "script"]
    assert scripts == ["/page/app.js"]
    for tag, attributes in ELEMENTS:
        assert tag != "style"
        assert not [name for name in attributes if name == "style" or name.startswith("on")]
    for name, text in FILES.items():
        addresses = re.findall(r"(?:https?:)?//[a-z0-9.-]+\.[a-z]{2,}[^\s\"')]*", text)
        assert set(addresses) <= {"http://www.w3.org/2000/svg"}, name


def test_everything_that_it_names_is_there() -> None:
    named = {value for _, attributes in ELEMENTS for name in ("src", "href") if (value := attributes.get(name))}
    assert {f"/page/{name}" for name in ("app.js", "style.css", "icon.svg")} <= named
    imported = {name for script in SCRIPTS.values() for name in re.findall(r'from "\./([^"]+)"', script)}
    assert imported | {"app.js"} == set(SCRIPTS)
    drawn = set(re.findall(r'url\("/page/([^"]+)"\)', FILES["style.css"]))
    assert drawn <= set(FILES)


def test_text_never_becomes_markup() -> None:
    for name, script in SCRIPTS.items():
        assert not re.findall(
            r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function", script
        ), name
