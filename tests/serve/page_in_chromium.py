"""The page of `forge serve` in a real Chromium, on a real server: runs are started, watched, answered and deleted.

Run by `make pages`. Not part of `make test`, which needs no browser; where there is none, this fails and says so.
"""

import os
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from playwright.sync_api import Browser, Locator, Page, Route, expect

from forge.serve.keys import add_key
from tests.browser import chromium
from tests.serve.page_server import HOSTILE, Serving

PHONE = {"width": 360, "height": 740}
PICTURES = os.environ.get("PICTURES", "")
"""A folder for pictures of the page, to be looked at."""

expect.set_options(timeout=60_000)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as made:
        yield made


@pytest.fixture(scope="module")
def serving(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    served = Serving(tmp_path_factory.mktemp("page"))
    yield served
    served.stop()


@contextmanager
def shown(browser: Browser, url: str, *, refused: str = "", **options: Any) -> Iterator[Page]:
    """A tab. A request elsewhere fails the test, and so does any error but those of requests with status `refused`."""
    context = browser.new_context(**{"viewport": {"width": 1280, "height": 900}, **options})
    tab, wrong = context.new_page(), list[str]()
    tab.on("pageerror", lambda error: wrong.append(str(error)))
    tab.on("dialog", lambda dialog: wrong.append(f"a dialog: {dialog.message}"))
    tab.on("request", lambda asked: None if asked.url.startswith((url, "blob:")) else wrong.append(asked.url))

    def said(text: str) -> None:
        if not (refused and re.search(refused, text)):
            wrong.append(text)

    tab.on("console", lambda message: said(message.text) if message.type in {"error", "warning"} else None)
    tab.goto(url)
    yield tab
    picture(tab, "end")
    context.close()
    assert wrong == []


def picture(tab: Page, name: str) -> None:
    if PICTURES:
        test = os.environ["PYTEST_CURRENT_TEST"].split("::")[-1].split()[0].removeprefix("test_")
        tab.screenshot(path=Path(PICTURES) / f"{test}-{name}.png")


@pytest.fixture
def opened(browser: Browser, serving: Serving) -> Iterator[Page]:
    with shown(browser, serving.url) as tab:
        yield tab


def start(tab: Page, message: str, workflow: str = "desk") -> None:
    tab.get_by_role("link", name="Start a run").click()
    tab.get_by_label("Workflow").last.select_option(workflow)
    if workflow == "inquiry":
        tab.get_by_label("who").fill("customers")
    tab.get_by_label("Message", exact=True).fill(message)
    tab.get_by_role("button", name="Start", exact=True).click()


def state(tab: Page) -> Locator:
    return tab.locator("#run-state .badge")


def question(tab: Page) -> Locator:
    return tab.get_by_role("region", name="A call waits for approval")


def turn(tab: Page, number: int) -> Locator:
    return tab.locator(".turn").filter(has=tab.get_by_role("heading", name=f"Turn {number}", exact=False))


def started(serving: Serving, message: str, workflow: str = "desk") -> str:
    """A run, started without the page."""
    variables = {"who": "customers"} if workflow == "inquiry" else {}
    body = {"workflow": workflow, "message": message, "variables": variables, "background": True}
    run: str = httpx.post(f"{serving.url}/v1/runs", json=body, trust_env=False, timeout=60).json()["id"]
    return run


def until(serving: Serving, run: str, state: str) -> None:
    """Wait until the run is in that state."""
    with httpx.Client(base_url=serving.url, trust_env=False, timeout=60) as client:
        while client.get(f"/v1/runs/{run}").json()["state"] != state:
            time.sleep(0.05)


def test_a_run_that_lost_its_model_is_retried_and_other_tabs_show_it(
    opened: Page, browser: Browser, serving: Serving
) -> None:
    start(opened, "Look away from A-17")
    expect(state(opened)).to_have_text("Halted")
    expect(opened.locator("#turns .end.bad")).to_contain_text("no reply from the model: unreachable")
    with shown(browser, serving.url) as other:
        other.goto(opened.url)
        expect(state(other)).to_have_text("Halted")
        opened.get_by_role("button", name="Retry").click()
        for tab in (opened, other):
            expect(question(tab)).to_be_visible()
            expect(tab.get_by_role("button", name="Retry")).to_be_hidden()
            result = turn(tab, 1).locator(".call.read .result")
            expect(result).to_have_text('{"customer_id":"C-204","total":129.9}')
            expect(result).to_have_count(1)


def test_a_tab_shows_that_its_ended_run_was_followed_or_deleted_elsewhere(
    opened: Page, browser: Browser, serving: Serving
) -> None:
    start(opened, "please ask", "inquiry")
    asks = opened.get_by_role("region", name="The run asks")
    expect(asks).to_be_visible()
    with shown(browser, serving.url, refused="404") as other:
        other.goto(opened.url)
        expect(other.get_by_role("region", name="The run asks")).to_be_visible()
        asks.get_by_role("button", name="A-17").click()
        asks.get_by_role("button", name="Answer").click()
        expect(opened.locator("#run-facts")).to_contain_text("continues from")
        expect(other.locator("#run-facts")).to_contain_text("continues in")
        expect(other.get_by_role("region", name="The run asks")).to_have_count(0)
        run = other.url.rpartition("/")[2]
        httpx.delete(f"{serving.url}/v1/runs/{run}", trust_env=False).raise_for_status()
        expect(other.locator("#run-problem")).to_contain_text("there is no run")


def test_a_run_is_started_watched_approved_with_a_change_and_read(opened: Page, serving: Serving) -> None:
    start(opened, "Report on A-17, early, and hang")
    expect(state(opened)).to_have_text("Running")
    # Half of the reply is written: it is shown before the rest is there.
    expect(opened.locator("#turns .live .said").first).to_be_visible()
    expect(opened.locator("#turns .call")).to_have_count(0)
    picture(opened, "live")
    serving.release()
    # The call that came too early, why it was refused, and the one that was accepted.
    expect(turn(opened, 1).locator(".call.proposed .state")).to_have_text("not accepted")
    expect(turn(opened, 1).locator(".note.nudge")).to_contain_text("Corrected: a required step is missing")
    expect(turn(opened, 2).locator(".call.read .result")).to_have_text('{"customer_id":"C-204","total":129.9}')
    expect(question(opened)).to_be_visible()
    expect(opened).to_have_title(re.compile("^Waiting for a person · "))
    expect(opened.locator("#meters")).to_contain_text("Model calls3 of 12")
    amount = question(opened).get_by_label("amount")
    expect(amount).to_have_value("129.9")
    expect(amount).to_have_accessible_description("In euros. · number")
    amount.fill("one hundred")
    question(opened).get_by_role("button", name="Approve with these changes").click()
    expect(question(opened).get_by_role("alert")).to_contain_text("amount: not valid JSON")
    expect(amount).to_be_focused()
    # What the server's own check refuses is said at the question, too.
    amount.fill('"much"')
    question(opened).get_by_role("button", name="Approve with these changes").click()
    expect(opened.locator("#question .problem:visible").first).to_contain_text("amount")
    question(opened).get_by_label("amount").fill("100")
    question(opened).get_by_label("note").fill("As agreed")
    picture(opened, "question")
    question(opened).get_by_role("button", name="Approve with these changes").click()
    expect(state(opened)).to_have_text("Completed")
    card = opened.locator("#turns .call.write")
    expect(card).to_contain_text("arguments changed by a person")
    expect(card.locator(".arguments")).to_contain_text("As agreed")
    expect(card.locator(".result")).to_contain_text("refunded 100")
    expect(opened.locator("#outcome")).to_contain_text("Done: ")
    expect(question(opened)).to_be_hidden()
    for control in ("Cancel", "Send"):
        expect(opened.get_by_role("button", name=control, exact=True)).to_be_hidden()
    # The same from its address, when all is over.
    before = opened.locator("#turns").inner_text()
    opened.reload()
    expect(state(opened)).to_have_text("Completed")
    expect(opened.locator("#turns")).to_have_text(re.compile("The run is completed"))
    assert opened.locator("#turns").inner_text() == before
    with opened.expect_download() as download:
        opened.get_by_role("button", name="Journal").click()
    assert download.value.suggested_filename.endswith(".jsonl")
    assert '"refund"' in Path(download.value.path()).read_text(encoding="utf-8")


def test_a_call_is_rejected_with_a_reason(opened: Page) -> None:
    start(opened, "Report on A-17")
    question(opened).get_by_label("Reason, told to the model").fill("It is too old.")
    question(opened).get_by_role("button", name="Reject").click()
    expect(opened.locator(".call.write .state").first).to_have_text(re.compile("not approved|not run|refused"))
    expect(opened.locator("#turns")).to_contain_text("It is too old.")


def test_what_it_asks_in_words_is_answered_and_goes_on_in_another_run(opened: Page) -> None:
    start(opened, "ask me", workflow="inquiry")
    asks = opened.get_by_role("region", name="The run asks")
    expect(asks).to_contain_text("Which order do you mean?")
    picture(opened, "asks")
    asks.get_by_role("button", name="Answer").click()
    expect(asks.get_by_role("alert")).to_have_text("Write an answer first.")
    asks.get_by_role("button", name="A-17").click()
    expect(asks.get_by_label("Your answer")).to_have_value("A-17")
    asks.get_by_role("button", name="Answer").click()
    expect(opened.locator("#run-facts")).to_contain_text("continues from")
    expect(state(opened)).to_have_text("Completed")
    opened.locator("#run-facts a").click()
    expect(opened.locator("#run-facts")).to_contain_text("continues in")


def test_a_conversation_goes_on_and_agents_within_it_are_shown(opened: Page) -> None:
    opened.get_by_role("link", name="Start a run").click()
    opened.get_by_text("Options").click()
    opened.get_by_label("Conversation").fill("ann")
    start(opened, "What does A-17 cost?", workflow="clerk")
    expect(state(opened)).to_have_text("Completed")
    expect(opened.locator("#outcome")).to_contain_text("I was told: ")
    within = opened.locator("#turns .call .within")
    expect(within).to_have_count(1)
    if within.get_attribute("open") is None:  # it is open if it was seen as it happened
        within.get_by_text("Agent expert").click()
    expect(within.locator(".call .result")).to_have_text('{"customer_id":"C-204","total":129.9}')
    expect(within).to_contain_text("The run is completed")
    before = within.inner_text()
    picture(opened, "within")
    opened.reload()
    within.get_by_text("Agent expert").click()
    expect(within).to_contain_text("The run is completed")
    assert within.inner_text() == before
    opened.get_by_label("Next message").fill("And with VAT?")
    opened.get_by_role("button", name="Send").click()
    expect(opened.locator("#run-message")).to_have_text("And with VAT?")
    expect(opened.locator("#run-facts")).to_contain_text("continues from")
    expect(state(opened)).to_have_text("Completed")
    expect(opened.get_by_label("Next message")).to_be_empty()
    opened.locator("#run-facts a").click()
    expect(opened.locator("#run-facts")).to_contain_text("continues in")
    expect(opened.get_by_label("Next message")).to_be_hidden()


def test_a_run_is_told_something_cancelled_and_deleted(browser: Browser, tmp_path: Path) -> None:
    served = Serving(tmp_path)
    try:
        with shown(browser, served.url) as tab:
            start(tab, "Report on A-17 and hang")
            expect(state(tab)).to_have_text("Running")
            tab.get_by_label("Message to the run").fill("Be quick.")
            tab.get_by_role("button", name="Send").click()
            expect(tab.locator("#steer-note")).to_contain_text("Sent.")
            served.release()
            expect(tab.locator(".note.user")).to_contain_text("Be quick.")
            expect(question(tab)).to_be_visible()
            tab.get_by_role("button", name="Cancel").click()
            sure = tab.get_by_role("dialog", name="Cancel this run?")
            expect(sure.get_by_role("button", name="No, go back")).to_be_focused()
            picture(tab, "sure")
            tab.keyboard.press("Escape")
            expect(question(tab)).to_be_visible()
            tab.get_by_role("button", name="Cancel").click()
            sure.get_by_role("button", name="Cancel the run").click()
            expect(state(tab)).to_have_text("Cancelled")
            expect(question(tab)).to_be_hidden()
            tab.get_by_role("button", name="Delete").click()
            tab.get_by_role("button", name="Delete the run").click()
            expect(tab.locator("#list-note")).to_have_text("No runs yet.")
            assert tab.url.endswith("#/")
    finally:
        served.stop()


def test_runs_are_filtered_and_paged(browser: Browser, tmp_path: Path) -> None:
    served = Serving(tmp_path)
    try:
        ended = {started(served, f"Look up {number}", "inquiry") for number in range(34)}
        waits = started(served, "Report on A-17")
        until(served, waits, "waiting")
        for run in ended:
            until(served, run, "completed")
        with shown(browser, served.url) as tab:
            rows, more = tab.locator("#runs > li"), tab.get_by_role("button", name="Show more runs")
            expect(rows).to_have_count(30)
            held = list[Route]()
            tab.route("**state=completed**", lambda route: held.append(route))  # noqa: PLW0108 - it marks its handler
            tab.get_by_label("State").select_option("Completed")
            expect(more).to_be_hidden()  # more of which list, while the new one is not there?
            for route in held:
                route.continue_()
            tab.unroute("**state=completed**")
            more.click()
            expect(rows).to_have_count(34)
            names = set(rows.locator("strong").all_inner_texts())
            assert names == ended
            expect(more).to_be_hidden()
            tab.get_by_label("State").select_option("Waiting for a person")
            expect(rows).to_have_count(1)
            expect(rows).to_contain_text(waits)
            tab.get_by_label("Workflow").first.select_option("inquiry")
            expect(tab.locator("#list-note")).to_have_text("No matching runs.")
            tab.get_by_label("Workflow").first.select_option("desk")
            rows.get_by_role("link").click()
            expect(rows.get_by_role("link")).to_have_attribute("aria-current", "page")
            question(tab).get_by_role("button", name="Approve").click()
            expect(state(tab)).to_have_text("Completed")
            expect(tab.locator("#list-note")).to_have_text("No matching runs.")
    finally:
        served.stop()


def test_a_hostile_text_is_text(opened: Page) -> None:
    start(opened, "hostile <b>report</b>")
    warning = question(opened).locator(".hidden-text").last
    expect(warning).to_contain_text("U+202E, U+202C, U+200B, U+E0041, U+001B, U+0007")
    for place in (warning, opened.locator(".call.write .arguments"), opened.locator(".said.reply").last):
        expect(place).to_contain_text("<img src=x onerror=alert(1)><script>alert(2)</script>")
        expect(place.locator(".code-point").first).to_have_text("U+202E")
    expect(opened.locator("#run-message")).to_have_text("hostile <b>report</b>")
    picture(opened, "hostile")
    # It is approved as it is, to the letter.
    question(opened).get_by_role("button", name="Approve", exact=True).click()
    expect(state(opened)).to_have_text("Completed")
    assert opened.locator("main img, main script, main b").count() == 0
    assert not re.search("[\u202a-\u202e\u200b\x00-\x08\x1b]", opened.locator("body").inner_text())
    assert HOSTILE  # what the model said is that


def test_the_policy_of_the_page_lets_no_script_in(browser: Browser, serving: Serving) -> None:
    with shown(browser, serving.url, refused="Content Security Policy|TrustedHTML|Trusted") as tab:
        ran = tab.evaluate(
            """() => {
              const script = document.createElement("script");
              try { script.textContent = "window.bad = 1"; document.body.append(script); } catch { /* refused */ }
              try { document.body.insertAdjacentHTML("beforeend", "<img src=x onerror='window.bad = 1'>"); }
              catch { return "refused"; }
              return String(window.bad);
            }"""
        )
        assert ran == "refused"
        assert tab.evaluate("() => window.bad") is None


def test_everything_can_be_done_with_the_keyboard(opened: Page) -> None:
    opened.keyboard.press("Tab")
    expect(opened.locator("#skip")).to_be_focused()
    expect(opened.locator("#skip")).to_be_in_viewport()
    opened.keyboard.press("Enter")
    expect(opened.locator("#start-title")).to_be_focused()
    opened.keyboard.press("Tab")
    expect(opened.locator("#workflow")).to_be_focused()
    assert opened.locator("#workflow").evaluate("one => getComputedStyle(one).outlineStyle") == "solid"
    opened.keyboard.press("Tab")
    opened.keyboard.type("Report on A-17")
    opened.keyboard.press("Control+Enter")
    expect(opened.locator("#run-title")).to_be_focused()
    expect(question(opened)).to_be_visible()
    expect(opened.locator("#said")).to_have_text("The run asks: allow refund?")
    for _ in range(30):
        opened.keyboard.press("Tab")
        if opened.evaluate("() => document.activeElement.textContent") == "Approve":
            break
    opened.keyboard.press("Enter")
    expect(state(opened)).to_have_text("Completed")
    expect(opened.locator("#timeline-title")).to_be_focused()


START = """
- link "Skip to the run"
- banner:
  - link "Start a run"
- navigation "Runs":
  - heading "Runs" [level=2]
  - paragraph:
    - combobox "State"
  - paragraph:
    - combobox "Workflow"
- main:
  - region "Start a run":
    - heading "Start a run" [level=1]
    - paragraph:
      - combobox "Workflow"
    - paragraph:
      - textbox "Message"
      - text: What the model should do. Ctrl+Enter starts the run.
    - paragraph:
      - button "Start"
    - region "Tools":
      - list:
        - listitem:
          - code: get_order
          - text: read required
"""

WAITS = """
- navigation "Runs":
  - list:
    - listitem:
      - link /Waiting desk/
- main:
  - region /[0-9a-f]{32}/:
    - heading /[0-9a-f]{32}/ [level=1]
    - paragraph:
      - text: /Waiting for a person desk · begun/
    - button "Cancel"
    - button "Journal"
    - progressbar "Model calls"
    - progressbar "Tokens"
    - progressbar "Context"
    - region "A call waits for approval":
      - heading "A call waits for approval" [level=2]
      - paragraph:
        - textbox "order_id": A-17
      - paragraph:
        - textbox "amount": "129.9"
        - text: In euros. · number
      - paragraph:
        - button "Approve"
      - paragraph:
        - textbox "Reason, told to the model"
      - paragraph:
        - button "Reject"
    - region "Timeline":
      - heading "Timeline" [level=2]
      - list:
        - listitem:
          - heading "Start" [level=3]
        - listitem:
          - heading /Turn 1/ [level=3]
          - article "Call get_order":
            - text: read succeeded
            - term: order_id
            - definition: A-17
        - listitem:
          - heading /Turn 2/ [level=3]
          - article "Call refund":
            - text: write needs approval waiting for a person
    - paragraph:
      - textbox "Message to the run"
      - button "Send"
- status: "The run asks: allow refund?"
"""


def test_a_screen_reader_is_told_what_there_is(opened: Page) -> None:
    """The accessibility tree, as Chromium makes it."""
    opened.get_by_role("link", name="Start a run").click()
    expect(opened.locator("body")).to_match_aria_snapshot(START)
    start(opened, "Report on A-17")
    expect(question(opened)).to_be_visible()
    expect(opened.locator("body")).to_match_aria_snapshot(WAITS)


def test_a_server_that_is_started_again_costs_no_event(browser: Browser, tmp_path: Path) -> None:
    served = Serving(tmp_path)
    try:
        with shown(browser, served.url, refused="ERR_|net::") as tab:
            start(tab, "Report on A-17, early")
            expect(question(tab)).to_be_visible()
            before = tab.locator("#turns").inner_text()
            question(tab).get_by_label("note").fill("stuck")
            question(tab).get_by_role("button", name="Approve with these changes").click()
            expect(tab.locator(".call.write .state")).to_have_text("runs …")
            served.stop()
            expect(tab.locator("#connection")).to_contain_text("Connection lost")
            picture(tab, "lost")
            served.start()
            expect(tab.locator("#connection")).to_be_empty()
            # The call had begun: nobody knows whether it took effect, and a person is asked.
            unsure = tab.get_by_role("region", name="Did this call take effect?")
            expect(unsure).to_contain_text("stuck")
            picture(tab, "unsure")
            unsure.get_by_label("Its result").fill("refunded by hand")
            unsure.get_by_role("button", name="It took effect").click()
            expect(state(tab)).to_have_text("Completed")
            expect(tab.locator("#turns")).to_contain_text("refunded by hand")
            assert tab.locator("#turns").inner_text().startswith(before.partition("refund")[0])
            expect(tab.locator(".turn h3")).to_have_count(len(set(tab.locator(".turn h3").all_inner_texts())))
            once = tab.locator("#turns").inner_text()
            tab.reload()
            expect(tab.locator("#turns")).to_contain_text("The run is completed")
            assert tab.locator("#turns").inner_text() == once
    finally:
        served.stop()


def test_a_key_is_asked_for_and_kept_in_the_tab(browser: Browser, tmp_path: Path) -> None:
    keys = tmp_path / "keys"
    secret = add_key(keys, "ann", ("read", "run"))
    served = Serving(tmp_path, keys)
    try:
        with shown(browser, served.url, refused="40[13]") as tab:
            dialog = tab.get_by_role("dialog", name="API key")
            expect(dialog.get_by_label("Key")).to_be_focused()
            dialog.get_by_label("Key").fill("wrong")
            tab.keyboard.press("Enter")
            expect(dialog).to_contain_text("The server rejected this key")
            picture(tab, "key")
            dialog.get_by_label("Key").fill(secret)
            dialog.get_by_role("button", name="Use it").click()
            start(tab, "Report on A-17")
            expect(question(tab)).to_be_visible()
            # This key may not answer.
            question(tab).get_by_role("button", name="Approve").click()
            expect(question(tab).get_by_role("alert")).to_contain_text("answer")
            tab.reload()
            expect(question(tab)).to_be_visible()
            assert tab.evaluate("() => Object.keys(localStorage).length") == 0
            tab.get_by_role("button", name="API key").click()
            tab.get_by_role("button", name="Forget the key").click()
            expect(dialog).to_be_visible()
    finally:
        served.stop()


def test_of_an_unknown_run_it_says_so(browser: Browser, serving: Serving) -> None:
    with shown(browser, serving.url, refused="404") as tab:
        tab.goto(f"{serving.url}/#/runs/no-such-run")
        expect(tab.locator("#run-problem")).to_contain_text("there is no run")
        for address in ("#/runs/%", "#/runs/__proto__", "#/nowhere"):
            tab.goto(f"{serving.url}/{address}")
            expect(tab.locator("#list-title")).to_be_visible()


CONTRAST = """() => {
  const number = (text) => text.match(/[\\d.]+/g).map(Number);
  const shine = ([r, g, b]) => [r, g, b].map((one) => one / 255)
    .map((one) => (one <= 0.03928 ? one / 12.92 : ((one + 0.055) / 1.055) ** 2.4))
    .reduce((sum, one, at) => sum + one * [0.2126, 0.7152, 0.0722][at], 0);
  const behind = (one) => {
    for (let place = one; place; place = place.parentElement) {
      const colour = number(getComputedStyle(place).backgroundColor);
      if (colour[3] === undefined || colour[3] > 0.99) return colour;
    }
    return [255, 255, 255];
  };
  const low = [];
  for (const one of document.querySelectorAll("body *")) {
    const own = [...one.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim());
    if (!own || !one.checkVisibility() || one.closest(":disabled") || one.matches(".unseen, .skip, option")) continue;
    const [light, dark] = [shine(number(getComputedStyle(one).color)), shine(behind(one))].sort((a, b) => b - a);
    const ratio = (light + 0.05) / (dark + 0.05);
    if (ratio < 4.5) low.push(`${one.tagName}.${one.className} ${ratio.toFixed(2)} ${one.textContent.slice(0, 40)}`);
  }
  return low;
}"""

NAMELESS = """() => [...document.querySelectorAll("button, a, input, select, textarea, progress, [role=dialog]")]
  .filter((one) => one.checkVisibility())
  .filter((one) => !(one.innerText?.trim() || one.labels?.length || one.getAttribute("aria-label")))
  .map((one) => one.outerHTML)"""

WIDE = "() => document.documentElement.scrollWidth - document.documentElement.clientWidth"


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", [{"width": 1280, "height": 900}, PHONE], ids=["desk", "phone"])
def test_it_can_be_read_at_every_size_in_every_light(
    browser: Browser, serving: Serving, scheme: str, size: dict[str, int]
) -> None:
    with shown(browser, serving.url, color_scheme=scheme, viewport=size) as tab:

        def looked_at(name: str) -> None:
            picture(tab, name)
            assert tab.evaluate(WIDE) <= 0, name
            assert tab.evaluate(CONTRAST) == [], name
            assert tab.evaluate(NAMELESS) == [], name

        looked_at("list")
        tab.get_by_role("link", name="Start a run").click()
        looked_at("start")
        start(tab, "Report, early and long, on A-17 hostile " + "x" * 100)
        expect(question(tab)).to_be_visible()
        looked_at("question")
        question(tab).get_by_role("button", name="Approve").click()
        expect(state(tab)).to_have_text("Completed")
        looked_at("ended")
        if size == PHONE:
            expect(tab.locator("#list")).to_be_hidden()
            tab.get_by_role("link", name="All runs").click()
            expect(tab.locator("#list-title")).to_be_focused()
            looked_at("runs")


def test_texts_are_made_inert(opened: Page) -> None:
    """The functions of text.js, on what is hard to get through a server."""
    inert: Callable[[str], str] = lambda text: opened.evaluate(  # noqa: E731
        """async (text) => (await import("/page/text.js")).inert(text).textContent""", text
    )
    assert inert("a\r\nb\tc") == "a\nb\tc"
    assert inert("a\rb") == "aU+000Db"
    assert inert("\u2066x\u2069\ufeff\u2028") == "U+2066xU+2069U+FEFFU+2028"
    family, persian = "\U0001f468\u200d\U0001f469\u200d\U0001f467", "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645"
    assert (inert(family), inert(persian)) == (family, persian)
    assert inert("a\u200db\u200d\u200d") == "aU+200DbU+200DU+200D"
    members: Callable[[str], object] = lambda json: opened.evaluate(  # noqa: E731
        """async (json) => (await import("/page/text.js")).members(json)""", json
    )
    assert members('{"a": 12345678901234567890, "b\\"": {"c": [1, {"d": "},"}]}, "a": "x" }') == [
        ["a", "12345678901234567890"],
        ['b"', '{"c": [1, {"d": "},"}]}'],
        ["a", '"x"'],
    ]
    assert members("{}") == []
    assert members("[1]") is None
    assert members("{") is None
