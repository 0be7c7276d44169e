"""Priors in runs: measured from journals, divided out of what the model says, and refused where they don't belong."""

from pathlib import Path
from typing import Any, Literal

import pytest

import forge
from forge import Workflow, tool
from forge.backends import Models
from forge.errors import ForgeError
from forge.interpreters.scripted import Scripted, worded
from forge.journal import measured_priors, replay
from stages.confidence.measure import AskLarger, MeasuredPriors, Prior, StopRun, WhenUnsure
from stages.effect import Reply
from stages.halt import Unsure


@tool
def route(queue: Literal["billing", "sales"], note: str = "") -> str:
    """Route the ticket."""
    return queue


def says(queue: str, probability: float) -> Reply:
    return worded(f'{{"tool": "route", "args": {{"queue": "{queue}"}}}}', **{queue: probability})


def ran(unsure: WhenUnsure, *said: Reply, **options: Any) -> Any:
    workflow = Workflow("desk", tools=[route], terminal_tool="route", unsure=unsure)
    model = Scripted(said, mode="constrained", logprobs=True)
    return forge.run_sync(workflow, "Charged twice.", backend=model, **options)


MEASURE = WhenUnsure(below=0, then=())


def measured(folder: Path, *probabilities: float) -> MeasuredPriors:
    """The priors of a model that says sales, so sure of it each time."""
    journals = [folder / f"{number}.jsonl" for number, _ in enumerate(probabilities)]
    for journal, probability in zip(journals, probabilities, strict=True):
        ran(MEASURE, says("sales", probability), journal=journal).unwrap()
    return measured_priors(journals)


def test_journals_tell_what_a_model_prefers_and_a_run_with_it_says_what_the_text_speaks_for(tmp_path: Path) -> None:
    priors = measured(tmp_path, 0.9, 0.95, 0.85)
    (prior,) = priors.priors
    assert (prior.tool, prior.argument, prior.replies) == ("route", "queue", 3)
    assert dict(zip(prior.values, prior.shares, strict=True)) == pytest.approx({'"billing"': 0.2, '"sales"': 0.8})
    unsure, journal = WhenUnsure(below=0, then=(), priors=priors), tmp_path / "run.jsonl"
    run = ran(unsure, says("sales", 0.6), journal=journal).unwrap()
    assert run.value == "billing"
    workflow = Workflow("desk", tools=[route], terminal_tool="route", unsure=unsure)
    assert replay(journal, workflow).unwrap().state == run.state


def test_what_follows_is_decided_by_what_is_left(tmp_path: Path) -> None:
    """0.4 to 0.6 is 2 to 0.75 once 0.2 to 0.8 is divided out, and so billing has 0.73."""
    priors = measured(tmp_path, 0.9, 0.95, 0.85)
    halted = ran(WhenUnsure(below=0.8, then=StopRun(), priors=priors), says("sales", 0.6)).failure()
    assert isinstance(halted.halt, Unsure)
    assert halted.halt.arguments == '{"queue":"billing"}'
    assert halted.halt.confidence == pytest.approx(2 / 2.75)


def test_what_a_larger_model_says_is_left_as_it_is(tmp_path: Path) -> None:
    unsure = WhenUnsure(below=0.9, then=AskLarger(), priors=measured(tmp_path, 0.9, 0.95, 0.85))
    workflow = Workflow("desk", tools=[route], terminal_tool="route", unsure=unsure)
    small = Scripted([says("sales", 0.6)], mode="constrained", logprobs=True)
    larger = Scripted([says("sales", 0.95)], mode="constrained", logprobs=True)
    assert forge.run_sync(workflow, "Go.", backend=Models(small, larger=larger)).unwrap().value == "sales"


def test_priors_of_another_model_are_refused_before_anything_runs(tmp_path: Path) -> None:
    known = measured(tmp_path, 0.9)
    other = MeasuredPriors(model="other", priors=known.priors)
    with pytest.raises(ForgeError, match=r"the priors of the workflow are those of the model 'other'"):
        ran(WhenUnsure(below=0, then=(), priors=other), says("sales", 0.6))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"tool": "rout"}, "there is no tool named 'rout'. Did you mean route?"),
        ({"argument": "note"}, "the tool has no argument of that name that is one of several values"),
        (
            {"values": ('"billing"', '"support"')},
            'its values are "billing", "sales", and the priors were measured with',
        ),
    ],
)
def test_priors_of_what_there_is_not_are_refused_when_the_workflow_is_made(changes: Any, said: str) -> None:
    good = {"tool": "route", "argument": "queue", "values": ('"billing"', '"sales"')}
    prior = Prior(**{**good, **changes}, shares=(0.2, 0.8), replies=30)
    unsure = WhenUnsure(below=0, then=(), priors=MeasuredPriors(model="", priors=(prior,)))
    with pytest.raises(ForgeError) as told:
        Workflow("desk", tools=[route], terminal_tool="route", unsure=unsure)
    assert said in str(told.value)


def test_journals_without_probabilities_are_refused_in_a_sentence(tmp_path: Path) -> None:
    workflow = Workflow("desk", tools=[route], terminal_tool="route")
    model = Scripted(['{"tool": "route", "args": {"queue": "sales"}}'], mode="constrained")
    forge.run_sync(workflow, "Go.", backend=model, journal=tmp_path / "run.jsonl")
    with pytest.raises(ForgeError, match="contain no probabilities of values"):
        measured_priors([tmp_path / "run.jsonl"])
