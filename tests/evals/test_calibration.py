"""Calibration: laws of the diagram's data and of the curve, and cases that can be counted by hand."""

import asyncio
from typing import Literal

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from forge import Workflow
from forge.errors import ForgeError
from forge.evals.configurations import Cell
from forge.evals.players import FORGE
from forge.evals.report import markdown, report_of
from forge.evals.row import Configuration, Row
from forge.evals.scenario import Scenario, World
from forge.evals.series import RunOptions, Series, row_of
from forge.evals.serving import Serving
from forge.evals.statistics import expected_calibration_error, judged_confidences, reliability, risk_at, risk_coverage
from forge.interpreters.scripted import Line, Scripted, worded
from tests.evals.rows import row

PAIRS = st.lists(st.tuples(st.floats(0, 1), st.booleans()), max_size=40)


@given(PAIRS, st.integers(1, 20))
def test_each_pair_is_in_the_one_bin_that_it_belongs_to(pairs: list[tuple[float, bool]], bins: int) -> None:
    found = reliability(pairs, bins)
    assert sum(one.runs for one in found) == len(pairs)
    assert sum(one.right for one in found) == sum(right for _, right in pairs)
    assert [one.low for one in found] == sorted({one.low for one in found})
    assert all(one.low - 1e-9 <= one.confidence <= one.high + 1e-9 for one in found)


@given(PAIRS, st.integers(1, 20))
def test_the_error_is_between_none_and_all(pairs: list[tuple[float, bool]], bins: int) -> None:
    error = expected_calibration_error(pairs, bins)
    assert (error is None) == (not pairs)
    assert error is None or 0 <= error <= 1


def test_the_error_is_none_for_shares_that_keep_their_word_and_half_for_a_model_that_always_is_sure() -> None:
    assert expected_calibration_error([(0.75, True)] * 3 + [(0.75, False)]) == 0
    assert expected_calibration_error([(1.0, True), (1.0, False)]) == 0.5
    assert expected_calibration_error([(0.05, False), (0.95, True)]) == pytest.approx(0.05)


@given(PAIRS)
def test_coverage_grows_to_all_and_the_last_risk_is_that_of_all_runs(pairs: list[tuple[float, bool]]) -> None:
    curve = risk_coverage(pairs)
    assert len(curve) == len({sure for sure, _ in pairs})
    assert [point.coverage for point in curve] == sorted({point.coverage for point in curve})
    assert [point.threshold for point in curve] == sorted((point.threshold for point in curve), reverse=True)
    if pairs:
        wrong = sum(not right for _, right in pairs)
        assert (curve[-1].coverage, curve[-1].risk) == (1.0, wrong / len(pairs))
        assert risk_at(curve, 1.0) == curve[-1]
    for point in curve:
        left = [right for sure, right in pairs if sure >= point.threshold]
        assert (point.coverage, point.risk) == (len(left) / len(pairs), left.count(False) / len(left))


def test_a_model_that_knows_what_it_does_not_know_has_no_risk_at_less_coverage() -> None:
    pairs = [(0.9, True), (0.8, True), (0.4, False), (0.3, False)]
    half, most = risk_at(risk_coverage(pairs), 0.5), risk_at(risk_coverage(pairs), 0.6)
    assert half is not None
    assert most is not None
    assert (half.threshold, half.coverage, half.risk) == (0.8, 0.5, 0.0)
    assert (most.threshold, most.coverage) == (0.4, 0.75)
    assert risk_at((), 0.5) is None


def test_only_judged_rows_with_a_confidence_count() -> None:
    rows = [
        row(verdict="right", confidence=0.9),
        row(verdict="wrong", confidence=0.4),
        row(verdict="harm", confidence=0.5),
    ]
    assert judged_confidences([*rows, row(), row(verdict="unjudged", confidence=0.2)]) == (
        (0.9, True),
        (0.4, False),
        (0.5, False),
    )


def test_a_report_tells_what_was_measured_and_nothing_where_nothing_was() -> None:
    sure = [row(seed=n, verdict="right", confidence=0.95) for n in range(6)]
    unsure = [row(seed=n, verdict="wrong", confidence=0.45) for n in range(6, 8)]
    report = markdown(report_of([*sure, *unsure]))
    assert "measured in 8 runs: expected calibration error 0.15; right in 0 of 2 at 0.4 to 0.5, 6 of 6 at 0.9" in report
    assert "25% were not right; stopped below 0.95, 75% would be left, 0% of them not right." in report
    assert "onfidence of" not in markdown(report_of([row(seed=n) for n in range(3)]))


SURE = worded('{"tool": "route", "args": {"queue": "billing"}}', billing=0.9)
SAME = worded('{"tool": "route", "args": {"queue": "sales"}}', sales=0.4)
READ = worded('{"tool": "read", "args": {"ticket": 7}}')
VARIANTS: dict[str, tuple[list[Line], str, float | None]] = {
    "": ([], "Completed", None),
    "measure": ([], "Completed", 0.4),
    "stop": ([], "Unsure", 1.0),
    "stop:0.3": ([], "Completed", 0.4),
    "think": (["Charged twice: billing.", SURE], "Completed", 0.9),
    "vote": ([SAME, SAME], "Completed", 1.0),
}


@pytest.mark.parametrize("unsure", VARIANTS)
def test_a_run_has_the_confidence_of_its_least_sure_call_and_ends_as_its_variant_says(unsure: str) -> None:
    replies, end, confidence = VARIANTS[unsure]
    made = _played(unsure, [READ, SAME, *replies])
    assert (made.end, made.confidence) == (end, None if confidence is None else pytest.approx(confidence))


def test_a_row_of_before_confidence_was_measured_is_read() -> None:
    told = msgspec.json.decode(msgspec.json.encode(row(confidence=0.4)))
    del told["confidence"], told["configuration"]["unsure"]
    assert msgspec.convert(told, Row) == row()


def test_runs_that_cannot_be_measured_are_refused_before_the_first_of_them() -> None:
    model, told = Scripted([], mode="constrained"), list[Row]()

    async def run() -> None:
        async with model.connect() as connection:
            serving = Serving(model="m", backend="b", slots=1, connections={"constrained": connection})
            series = Series(serving=serving, players={"forge": FORGE}, options=RunOptions(), told=told.append)
            await series.run([_cell("measure")], 1)

    with pytest.raises(ForgeError, match="--unsure needs log-probabilities"):
        asyncio.run(run())
    assert told == []
    assert model.requests == ()


def _played(unsure: str, replies: list[Line]) -> Row:
    model = Scripted(replies, mode="constrained", logprobs=True)

    async def run() -> Row:
        async with model.connect() as connection:
            return await row_of(_cell(unsure), FORGE, connection, RunOptions(), asyncio.Lock())

    return asyncio.run(run())


def _cell(unsure: str) -> Cell:
    def read(ticket: int) -> str:
        """Read a ticket."""
        return "The user was charged twice."

    def route(queue: Literal["billing", "sales"]) -> str:
        """Route it."""
        return queue

    workflow = Workflow("desk", tools=[read, route], terminal_tool="route")
    world = World(workflow=workflow, messages=("Route ticket 7.",), right=lambda _: "")
    scenario = Scenario(name="desk", about="A desk.", world=lambda _: world, ideal_calls=2)
    known = Configuration(model="m", backend="b", mode="constrained", unsure=unsure)
    return Cell(configuration=known, scenario=scenario, seed=1)
