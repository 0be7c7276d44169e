"""The page of a report as a document: complete without a network, its texts harmless, its controls named.

What it does in a browser is tested by `make pages`, in tests/evals/page_in_chromium.py.
"""

import base64
import hashlib
import json
import re
from collections import Counter
from html.parser import HTMLParser

import pytest
from msgspec.structs import replace

from forge.evals.report import report_of
from forge.evals.report_page import page_of
from tests.evals.rows import AUTO, PLAIN, configuration, row, rows_of, suite

EVIL = '</script><img src=x onerror="document.title=1"><!--<script>\'"&amp;${7*7}'
VOID = {"meta", "br", "wbr", "img", "input", "link"}
DRAWN = {"rect"}


class Document(HTMLParser):
    """The elements of a page with their attributes, and what texts they hold; a wrong nesting fails."""

    def __init__(self, content: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.texts: list[tuple[str, str]] = []
        self.feed(content)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        assert tag in DRAWN

    def handle_data(self, data: str) -> None:
        if self.open:
            self.texts.append((self.open[-1], data))

    def named(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.elements if name == tag]


def inline(content: str, tag: str) -> str:
    """The text of the page's only element of that kind without a type."""
    (text,) = re.findall(rf"<{tag}>(.*?)</{tag}>", content, re.DOTALL)
    return str(text)


def test_it_is_one_document_that_asks_nobody_for_anything() -> None:
    content = page_of(report_of(suite(seeds=3)), {})
    document = Document(content)
    used = {name for _, attributes in document.elements for name in attributes}
    assert not used & {"src", "srcset", "data", "action", "ping", "style"}
    assert {link["href"] for link in document.named("a")} == {"#map"}
    assert not re.search(r"@import|url\(|https?:|fetch\(|XMLHttp|import\(", content)
    assert not document.named("link")


def test_its_policy_allows_its_own_script_and_style_and_nothing_else() -> None:
    content = page_of(report_of(suite(seeds=1)), {})
    (policy,) = re.findall(r'Content-Security-Policy" content="([^"]*)"', content)
    for directive, tag in (("style-src", "style"), ("script-src", "script")):
        digest = base64.b64encode(hashlib.sha256(inline(content, tag).encode()).digest()).decode()
        assert f"{directive} 'sha256-{digest}';" in policy
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy


def test_hostile_texts_are_text() -> None:
    evil = replace(
        row(replace(AUTO, model=EVIL, mode=EVIL), EVIL, verdict="wrong"),
        why=EVIL,
        end=EVIL,
        tags=(EVIL,),
        commit=EVIL,
        journals=(EVIL,),
    )
    heading = replace(evil, configuration=replace(PLAIN, player="# Evals"), verdict="unjudged", why="**right**")
    rows = [evil, replace(evil, configuration=PLAIN), replace(evil, verdict="unjudged", seed=9), heading]
    content = page_of(report_of(rows), {EVIL: ((EVIL, EVIL, ((EVIL, EVIL),)),)}, title=EVIL)
    document = Document(content)
    plain = Document(page_of(report_of(suite(seeds=1)), {}))
    assert {tag for tag, _ in document.elements} <= {tag for tag, _ in plain.elements} | {"li", "ul", "h3"}
    used = {name for _, attributes in document.elements for name in attributes}
    assert not [name for name in used if name.startswith("on")]
    assert len(document.named("script")) == 2
    assert (len(document.named("h1")), document.named("strong"), document.named("a")) == (1, [], plain.named("a"))
    assert "<!--" not in content
    data = json.loads("".join(text for tag, text in document.texts if tag == "script").partition('"use strict"')[0])
    assert data["scenarios"] == [EVIL]
    assert data["timelines"][EVIL] == [[EVIL, EVIL, [[EVIL, EVIL]]]]


def test_every_control_has_a_name_and_every_id_is_there_once() -> None:
    document = Document(page_of(report_of(suite(seeds=2)), {}))
    ids = Counter(attributes["id"] for _, attributes in document.elements if "id" in attributes)
    assert set(ids.values()) == {1}
    for button in document.named("button"):
        assert button.get("aria-label")
    for _, attributes in document.elements:
        for name in ("aria-labelledby", "aria-controls"):
            assert attributes.get(name) is None or attributes[name] in ids
    labelled = sum(1 for tag, _ in document.elements if tag == "label")
    assert labelled == len(document.named("select")) == 2
    for heading in document.named("th"):
        assert heading.get("scope")
    for name in ("main", "h1", "caption", "dialog"):
        assert document.named(name), name


def test_a_table_of_metrics_is_named_after_its_model_and_its_rows_after_their_configurations() -> None:
    model = "<1> & 2 ## #"
    names = [replace(one, model=model) for one in (AUTO, replace(AUTO, player="1) mine"))]
    rows = [*rows_of(names[0], ["right"]), *rows_of(names[1], ["unjudged"])]
    content = page_of(report_of(rows), {})
    document = Document(content)
    regions = [one for one in document.named("div") if one.get("role") == "region"]
    assert f"Metrics of {model}" in [one["aria-label"] for one in regions]
    assert ("h2", "<1> & 2 ## #") in document.texts
    assert '<th scope="row">forge auto</th>' in content
    assert "<ol" not in content


def test_each_cell_says_its_runs_and_its_interval_without_colour() -> None:
    rows = [*rows_of(AUTO, ["right", "right", "wrong", "harm"], "triage"), *rows_of(PLAIN, ["unfinished"], "other")]
    content = page_of(report_of(rows), {})
    labels = [button["aria-label"] for button in Document(content).named("button")]
    assert "triage, forge auto: right in 2 of 4, 15\N{EN DASH}85 %; harm in 1; 4 runs" in labels
    assert "<b>2/4</b>" in content
    assert "<em>1 harm</em>" in content
    assert "<span class=hidden>not run</span>" in content


def test_the_data_have_every_run() -> None:
    rows = suite(seeds=2, skills={AUTO: 0.9, PLAIN: 0.2, configuration(mode="native"): 0.5})
    (text,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', page_of(report_of(rows), {}))
    data = json.loads(text)
    assert data["scenarios"] == list(report_of(rows).scenarios)
    assert sum(len(runs) for runs in data["runs"].values()) == len(rows)


@pytest.mark.parametrize("seeds", [1, 20])
def test_its_size_grows_with_the_runs_and_no_faster(seeds: int) -> None:
    rows = suite(seeds=seeds)
    assert len(page_of(report_of(rows), {})) < 250_000 + 400 * len(rows)
