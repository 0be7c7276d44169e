"""469 recorded replies of nine model families, with a floor and a reason for each one that is not read."""

import msgspec
from msgspec import Struct

from tests.canitoolcall_score import fixtures, judged
from tests.rescue_corpus import FOLDER

FLOOR = 463


class Failure(Struct, frozen=True):
    """A fixture that is not read as it expects, and why."""

    id: str
    verdict: str
    reason: str


def test_the_recorded_replies_are_read_and_each_failure_has_its_reason() -> None:
    lines = (FOLDER / "canitoolcall_failures.jsonl").read_text(encoding="utf-8").splitlines()
    known = {failure.id: failure.verdict for failure in (msgspec.json.decode(line, type=Failure) for line in lines)}
    verdicts = {fixture.id: judged(fixture) for fixture in fixtures()}
    assert {name: verdict for name, verdict in verdicts.items() if verdict != "exact"} == known
    assert sum(verdict != "wrong" for verdict in verdicts.values()) >= FLOOR
