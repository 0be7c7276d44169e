"""The page of a report in a real Chromium: filters, runs, timelines, keyboard, phone, dark, hostile texts.

Run by `make pages`. Not part of `make test`, which needs no browser; where there is none, this fails and says so.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from playwright.sync_api import Browser, Locator, Page, expect

from forge.evals.report import report_of
from forge.evals.report_page import page_of
from forge.evals.row import Row
from tests.browser import chromium
from tests.evals.rows import AUTO, PLAIN, SKILLS, row, suite
from tests.evals.test_report_page import EVIL

FIRST = "0,0"
PHONE = {"width": 390, "height": 844}
PICTURES = os.environ.get("PICTURES", "")
"""A folder for pictures of the page, to be looked at."""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as made:
        yield made


def with_journals(rows: list[Row]) -> list[Row]:
    return [
        replace(one, journals=(f"results.journals/{one.configuration.name}/{one.scenario}-{one.seed}.jsonl",))
        for one in rows
    ]


ROWS = with_journals(suite(seeds=5))
TIMELINES = {
    ROWS[0].journals[0]: (
        ("Model call 1", "", (("user", "What is the capital?"), ("called", 'look {"country":"France"}'))),
        ("Model call 2", "", (("tool", "Paris"), ("said", "Paris."))),
    )
}


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("pages") / "report.html"
    shown = {"results.journals/forge auto/basic_2step-0.jsonl": next(iter(TIMELINES.values()))}
    path.write_text(page_of(report_of(ROWS, against="forge auto"), shown), encoding="utf-8")
    return path


@pytest.fixture
def opened(browser: Browser, file: Path) -> Iterator[Page]:
    """The page, as on a desk. Whatever it asks the network for, and any error in its script, fails the test."""
    yield from shown(browser, file)


def shown(browser: Browser, file: Path, **options: Any) -> Iterator[Page]:
    context = browser.new_context(**{"viewport": {"width": 1280, "height": 900}, **options})
    tab, wrong = context.new_page(), list[str]()
    tab.on("pageerror", lambda error: wrong.append(str(error)))
    tab.on("console", lambda message: wrong.append(message.text) if message.type in {"error", "warning"} else None)
    tab.on("request", lambda asked: None if asked.url.startswith("file:") else wrong.append(asked.url))
    tab.goto(file.as_uri())
    yield tab
    if PICTURES:
        tab.screenshot(path=Path(PICTURES) / f"{os.environ['PYTEST_CURRENT_TEST'].split('::')[-1].split()[0]}.png")
    context.close()
    assert wrong == []


def rows_shown(tab: Page) -> Locator:
    return tab.locator("#scenarios tr:visible")


def test_filters_choose_scenarios_and_columns_and_say_how_many(opened: Page) -> None:
    expect(opened.locator("#shown")).to_have_text("12 of 12 scenarios, 12 of 12 configurations")
    opened.get_by_label("Tag", exact=True).select_option("recovery")
    expect(rows_shown(opened)).to_have_count(3)
    opened.get_by_label("Ablation", exact=True).select_option("bare")
    expect(opened.locator("#heat .names th[data-col]:visible").first).to_have_text("forge native bare")
    for label in ("Tag", "Ablation"):
        opened.get_by_label(label, exact=True).select_option("")
    expect(rows_shown(opened)).to_have_count(12)
    expect(opened.locator("#heat .names th[data-col]:visible")).to_have_count(12)


def test_a_cell_opens_its_runs_and_a_run_its_timeline(opened: Page) -> None:
    opened.get_by_role("button", name="basic_2step, forge auto (qwen2.5-coder-0.5b)").first.click()
    dialog = opened.get_by_role("dialog")
    expect(dialog).to_be_visible()
    expect(dialog.get_by_role("heading").first).to_have_text("basic_2step · forge auto (qwen2.5-coder-0.5b)")
    expect(dialog.locator(".run")).to_have_count(5)
    expect(dialog.locator(".run").nth(1)).to_contain_text("forge replay results.journals/")
    timeline = dialog.locator("details").first
    timeline.locator("summary").click()
    expect(timeline.locator("dd").nth(1)).to_have_text('look {"country":"France"}')


def test_of_very_many_runs_in_a_cell_the_first_are_shown(browser: Browser, tmp_path: Path) -> None:
    many = tmp_path / "many.html"
    many.write_text(page_of(report_of([row(seed=seed) for seed in range(130_000)]), {}), encoding="utf-8")
    for tab in shown(browser, many):
        tab.locator(f'[data-runs="{FIRST}"]').click()
        expect(tab.locator(".run")).to_have_count(1000)
        expect(tab.locator("#runs-list")).to_contain_text("129,000 runs more, which the file of results has.")


def test_everything_can_be_done_with_the_keyboard(opened: Page) -> None:
    opened.keyboard.press("Tab")
    expect(opened.locator(".skip")).to_be_focused()
    expect(opened.locator(".skip")).to_be_in_viewport()
    cell = opened.locator(f'#scenarios [data-runs="{FIRST}"]')
    cell.focus()
    assert cell.evaluate("cell => getComputedStyle(cell).outlineStyle") == "solid"
    opened.keyboard.press("Enter")
    dialog = opened.get_by_role("dialog")
    expect(dialog.get_by_role("button", name="Close")).to_be_focused()
    opened.keyboard.press("Escape")
    expect(dialog).to_be_hidden()
    expect(cell).to_be_focused()
    opened.get_by_label("Tag", exact=True).focus()
    opened.keyboard.press("ArrowDown")
    expect(opened.locator("#shown")).not_to_have_text("12 of 12 scenarios, 12 of 12 configurations")


@pytest.mark.parametrize("width", [390, 1280])
def test_where_cells_were_not_run_it_scrolls_sideways_no_further(browser: Browser, tmp_path: Path, width: int) -> None:
    first, *others = {one.configuration for one in ROWS}
    few = [one for one in ROWS if one.configuration == first or one.scenario == "basic_2step"]
    path = tmp_path / "few.html"
    path.write_text(page_of(report_of(few), {}), encoding="utf-8")
    for tab in shown(browser, path, viewport={"width": width, "height": 844}):
        tab.evaluate("window.scrollTo(9999, 0)")
        assert (len(others) > 5, tab.evaluate("window.scrollX")) == (True, 0)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_fits_a_phone_in_light_and_dark(browser: Browser, file: Path, scheme: str) -> None:
    for tab in shown(browser, file, viewport=PHONE, is_mobile=True, has_touch=True, color_scheme=scheme):
        assert tab.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
        small = tab.evaluate(
            "[...document.querySelectorAll('button, select, summary')].filter(one => one.checkVisibility())"
            ".map(one => one.getBoundingClientRect()).filter(box => box.height < 44 || box.width < 44).length"
        )
        assert small == 0
        cell = tab.locator(f'#scenarios [data-runs="{FIRST}"]')
        cell.tap()
        box = tab.get_by_role("dialog").bounding_box()
        assert box is not None
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= PHONE["width"]


CONTRAST = """
() => {
  const canvas = document.createElement('canvas').getContext('2d', { willReadFrequently: true });
  const light = (colour) => {
    canvas.fillStyle = colour;
    canvas.fillRect(0, 0, 1, 1);
    const [r, g, b] = [...canvas.getImageData(0, 0, 1, 1).data].slice(0, 3).map((part) => part / 255)
      .map((part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const behind = (one) => {
    for (; one; one = one.parentElement) {
      const colour = getComputedStyle(one).backgroundColor;
      if (!/rgba\\(.*, 0\\)|transparent/.test(colour)) return colour;
    }
    return 'white';
  };
  const ratios = [];
  const texts = 'p, b, small, em, th, td, h1, h2, h3, label, output, dt, dd, li, summary';
  for (const one of document.querySelectorAll(texts)) {
    if (!one.checkVisibility() || !one.innerText.trim()) continue;
    const [front, back] = [light(getComputedStyle(one).color), light(behind(one))];
    const ratio = (Math.max(front, back) + 0.05) / (Math.min(front, back) + 0.05);
    if (ratio < 4.5) ratios.push([one.innerText.slice(0, 40), one.className, ratio]);
  }
  return ratios;
}
"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_text_can_be_read_on_what_is_behind_it(browser: Browser, file: Path, scheme: str) -> None:
    """A contrast of 4.5 to 1, as WCAG 2.2 asks of text of any size (1.4.3)."""
    for tab in shown(browser, file, color_scheme=scheme):
        tab.locator(f'#scenarios [data-runs="{FIRST}"]').click()
        assert tab.evaluate(CONTRAST) == []


def test_hostile_texts_are_shown_and_never_run(browser: Browser, tmp_path: Path) -> None:
    evil = replace(
        row(replace(AUTO, model=EVIL, mode=EVIL), EVIL, verdict="wrong"),
        why=EVIL,
        end=EVIL,
        tags=(EVIL,),
        journals=(EVIL,),
    )
    rows = [evil, replace(evil, configuration=PLAIN, why=f"javascript:{EVIL}", journals=("__proto__",))]
    path = tmp_path / "evil.html"
    made = page_of(report_of(rows), {EVIL: ((EVIL, EVIL, ((EVIL, EVIL),)),)}, title="Evals")
    path.write_text(made, encoding="utf-8")
    for tab in shown(browser, path):
        tab.locator("#scenarios [data-runs]").first.click()
        tab.locator(".run summary").first.click()
        expect(tab.locator(".run dd").first).to_have_text(EVIL)
        tab.keyboard.press("Escape")
        tab.locator("#scenarios [data-runs]").last.click()
        tab.keyboard.press("Escape")
        tab.get_by_label("Tag", exact=True).select_option(EVIL)
        expect(rows_shown(tab)).to_have_count(1)
        assert tab.title() == "Evals"
        assert tab.locator("img").count() == 0


def test_without_javascript_the_tables_are_complete(browser: Browser, file: Path) -> None:
    for tab in shown(browser, file, java_script_enabled=False):
        expect(tab.locator("#scenarios button")).to_have_count(len(SKILLS) * 12)
        expect(tab.get_by_text("Without JavaScript the tables are complete")).to_be_visible()
