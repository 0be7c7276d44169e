"""Bisect: two pipelines over what was recorded, up to the first state in which they part, and the stage to blame."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from forge import Calls, Context, Limits, SlidingWindowCompact, run_sync
from forge.errors import JournalError
from forge.interpreters.scripted import Line, Scripted, call
from forge.journal.bisection import bisect
from forge.journal.records import read_journal
from forge.workflow.turn import stages_of
from stages import enforce, validate
from stages.halt import BadReplies
from stages.state import State
from tests.flows import Desk

FENCED = '```json\n{"name": "look", "arguments": {"what": "a"}}\n```'
EARLY = call("finish", result="ok")
SCRIPT: list[Line] = ["Hm.", FENCED, call("look", what="b"), EARLY]


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    path = tmp_path / "run.jsonl"
    run_sync(Desk().workflow, "Go.", backend=Scripted(SCRIPT), journal=str(path))
    return path


def test_a_workflow_does_not_part_from_itself(journal: Path) -> None:
    assert bisect(journal, Desk().workflow, Desk().workflow) is None


@pytest.mark.parametrize(
    ("options", "stage", "turn", "path"),
    [
        ({"calls": Calls(rescue_enabled=False)}, "validate", 2, "history[4]"),
        ({"context": Context(failed_attempts="collapse")}, "fold", 2, "phase.view[2].text"),
        (
            {"context": Context(compact_at=0.01, compact_to=0.01, compactor=SlidingWindowCompact(keep_recent=1))},
            "compact",
            2,
            "",
        ),
    ],
)
def test_the_stage_that_made_the_difference_is_named(
    journal: Path, options: dict[str, object], stage: str, turn: int, path: str
) -> None:
    parting = bisect(journal, Desk().workflow, Desk(**options).workflow)
    assert parting is not None
    assert (parting.stage, parting.turn) == (stage, turn)
    assert any(found.path.startswith(path) for found in parting.found), parting.found


def test_a_changed_prompt_is_said_once(journal: Path) -> None:
    parting = bisect(journal, Desk().workflow, Desk(context=Context(failed_attempts="collapse")).workflow)
    assert parting is not None
    assert {found.path.partition(".")[0] for found in parting.found} == {"phase"}


def test_one_that_halts_where_the_other_goes_on(journal: Path) -> None:
    parting = bisect(journal, Desk().workflow, Desk(limits=Limits(max_retries_per_step=0)).workflow)
    assert parting is not None
    assert parting.step == 3
    assert isinstance(parting.first, State)
    assert isinstance(parting.second, BadReplies)
    assert parting.found == ()


def test_pipelines_by_hand_are_compared_by_the_names_of_their_stages(journal: Path) -> None:
    workflow = Desk().workflow
    first = stages_of(workflow.compiled, read_journal(journal).header.setup)
    second = {**first, "validate": validate(replace(workflow.rules, calls=Calls(rescue_enabled=False)))}
    parting = bisect(journal, first, second)
    assert parting is not None
    assert (parting.stage, parting.turn) == ("validate", 2)
    without = {**first, "enforce": enforce()}
    assert bisect(journal, first, without) is None, "no guard had anything against this run"


def test_a_stage_that_only_one_of_them_has(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    run_sync(Desk().workflow, "Go.", backend=Scripted([EARLY] * 4), journal=str(path))
    first = stages_of(Desk().workflow.compiled, read_journal(path).header.setup)
    without = {name: stage for name, stage in first.items() if name != "enforce"}
    parting = bisect(path, first, without)
    assert parting is not None
    assert (parting.stage, parting.step) == ("enforce", 3)
    assert {"phase.type", "ledger.premature"} <= {found.path for found in parting.found}


def test_two_that_both_are_not_the_recorded_one(journal: Path) -> None:
    other = Desk(context=Context(failed_attempts="collapse")).workflow
    with pytest.raises(JournalError, match="both pipelines differ from the recorded run"):
        bisect(journal, other, other)
