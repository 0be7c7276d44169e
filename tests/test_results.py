"""The report of `make bench`: minutes of measuring must not be lost on it, nor a target be called met that is not."""

from xml.etree import ElementTree as ET

from benchmarks.results import machine, picture
from benchmarks.results_functions import Functions
from benchmarks.results_loop import BASE, TURNS, Loops
from benchmarks.results_report import report

SIZES = (100, 1_000, 10_000, 100_000)


def loops(forge: float, *, guardrails: bool) -> Loops:
    """Both modes with these microseconds a turn; the loop without a framework takes 10."""
    peers = {
        BASE: 10.0,
        "forge_new": forge,
        "forge_threads": forge + 50,
        **({"forge_guardrails": 99.0} if guardrails else {}),
    }
    costs = {peer: dict.fromkeys(TURNS, cost) for peer, cost in peers.items()}
    return Loops(stub=costs, http=costs)


def functions(speed: float) -> Functions:
    """Compaction at this speed, in million messages a second."""
    return Functions(
        compaction={"TieredCompact, phase 1": dict.fromkeys(SIZES, speed)},
        one_pass=dict.fromkeys(SIZES, 30.0),
        check=dict.fromkeys((10, 10_000), 1.0),
        imports={"floor": 50.0, "raw_msgspec": 70.0, "forge_new": 90.0, "forge_http": 120.0},
    )


def verdicts(forge: float, speed: float) -> list[str]:
    text = report(machine(), loops(forge, guardrails=True), functions(speed))
    table = text.split("## Against the targets")[1].split("![")[0]
    return [line.split("|")[-2].strip() for line in table.strip().splitlines()[2:]]


def test_targets_are_met_or_not() -> None:
    assert verdicts(forge=11.0, speed=7.0) == ["yes"] * 7
    assert verdicts(forge=41.0, speed=5.0) == ["**no**", "yes", "**no**", "**no**", "yes", "yes", "yes"]


def test_without_forge_guardrails_its_recorded_numbers_stand_in() -> None:
    text = report(machine(), loops(20.0, guardrails=False), functions(7.0))
    assert text.count("| forge-guardrails (recorded) |") == 3
    assert "| forge-guardrails |" not in text


def test_the_chart_is_well_formed_and_names_every_peer() -> None:
    for guardrails in (True, False):
        drawn = ET.fromstring(picture(loops(20.0, guardrails=guardrails)))  # noqa: S314 - our own
        texts = [element.text for element in drawn.iter("{http://www.w3.org/2000/svg}text")]
        assert {"forge", "forge-guardrails", "no framework", "langchain", "(recorded)"} <= {*texts}
