"""A settings file that is edited, line by line, until its check passes."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from forge import ToolResolutionError, Workflow, tool
from forge.evals.scenario import PerformedCall, Scenario, Trajectory, World
from forge.evals.suite.checks import first_of
from forge.evals.suite.drawing import Draw
from forge.evals.suite.lookups import SYSTEM
from stages.rules import Limits, PastCall, Use

_RULES: Mapping[str, tuple[str, Callable[[str], bool]]] = {
    "port": ("a number from 1024 to 65535", lambda value: value.isdecimal() and 1024 <= int(value) <= 65535),
    "workers": ("a number from 1 to 64", lambda value: value.isdecimal() and 1 <= int(value) <= 64),
    "log_level": ("debug, info, warning or error", lambda value: value in ("debug", "info", "warning", "error")),
    "cache": ("on or off", lambda value: value in ("on", "off")),
    "time_zone": ("UTC", lambda value: value == "UTC"),
}
"""What each setting must be, in words and as a test."""


@dataclass
class _File:
    """The lines of the file as they are now."""

    lines: list[str]

    def read_file(self) -> list[str]:
        """Read the file, with the number of each line."""
        return [f"{number}: {line}" for number, line in enumerate(self.lines, 1)]

    def replace_line(self, number: int, text: str) -> str:
        """Replace a line of the file.

        Args:
            number: The line's number, from 1.
            text: The whole line as it shall be, its name included.
        """
        if not 1 <= number <= len(self.lines):
            raise ToolResolutionError(f"The file has no line {number}.")
        self.lines[number - 1] = text.strip()
        return f"Line {number} is now: {text.strip()}"

    def run_check(self) -> dict[str, object]:
        """Check the file; tells which lines are wrong, and what they must be like."""
        wrong = [f"line {number}: {problem}" for number, line in enumerate(self.lines, 1) if (problem := _faulty(line))]
        return {"passed": not wrong, "wrong": wrong}

    def finish(self) -> str:
        """End the work, once the check passes."""
        return "finished"


def _faulty(line: str) -> str:
    """What is wrong with a line of settings; empty: nothing."""
    name, _, value = (part.strip() for part in line.partition("="))
    if name not in _RULES:
        return f"there is no setting {name!r}"
    words, fits = _RULES[name]
    return "" if fits(value) else f"{name} must be {words}, not {value!r}"


def _lines(draw: Draw) -> list[tuple[str, str]]:
    """Each line as it should be, and as it is at first."""
    port, workers = draw.randrange(2000, 9000), draw.randrange(2, 60)
    level, cache = draw.choice(("debug", "info", "warning", "error")), draw.choice(("on", "off"))
    settings = [
        (f"port = {port}", f"port = {port}/tcp"),
        (f"workers = {workers}", f"workers = {workers} threads"),
        (f"log_level = {level}", f"log_level = {level.upper()}"),
        (f"cache = {cache}", f"cache = {'yes' if cache == 'on' else 'no'}"),
        ("time_zone = UTC", "time_zone = UTC+0"),
    ]
    broken = set(draw.sample(range(5), 2))
    lines = [(right, wrong if n in broken else right) for n, (right, wrong) in enumerate(settings)]
    return draw.sample(lines, len(lines))


def _edit_until_it_passes(seed: int) -> World:
    lines = _lines(Draw(seed))
    file = _File([was for _, was in lines])
    workflow = Workflow(
        "edit_until_it_passes",
        tools=[
            tool(effect="read", repeatable=True)(file.read_file),
            tool(prerequisites=["read_file"])(file.replace_line),
            tool(effect="read", repeatable=True)(file.run_check),
            file.finish,
        ],
        terminal_tool="finish",
        required_steps=["read_file", "replace_line", "run_check"],
        order=[Use(tool="run_check", again_after=("replace_line",))],
        completion_checks={"finish": _passes},
        system_prompt=SYSTEM,
        limits=Limits(max_iterations=15),
    )
    return World(
        workflow=workflow,
        messages=(
            "The check of our settings file fails. Fix the lines that are wrong, change nothing else, and finish.",
        ),
        right=partial(_fixed, lines),
        harm=partial(_broken, lines),
    )


def _passes(_: dict[str, object], results: tuple[PastCall, ...]) -> str | None:
    """What the workflow itself asks of the end: that the last check passed."""
    checks = [made.result for made in results if made.tool == "run_check"]
    passed = bool(checks) and isinstance(checks[-1], dict) and checks[-1]["passed"] is True
    return None if passed else "the last run_check found lines that are still wrong."


def _edited(lines: Sequence[tuple[str, str]], calls: Sequence[PerformedCall]) -> list[str]:
    """The file after the calls, without regard to spaces."""
    now = [was for _, was in lines]
    for call in calls:
        if call.tool == "replace_line" and not call.error:
            now[int(str(call.arguments["number"])) - 1] = str(call.arguments["text"])
    return ["".join(line.split()) for line in now]


def _fixed(lines: Sequence[tuple[str, str]], trajectory: Trajectory) -> str:
    names = [call.tool for call in trajectory.calls if not call.error]
    wrong = [
        now for now, (right, _) in zip(_edited(lines, trajectory.calls), lines, strict=True) if now != _plain(right)
    ]
    checked = "run_check" in names and "replace_line" not in names[len(names) - names[::-1].index("run_check") :]
    return first_of(
        f"still wrong: {', '.join(wrong)}" if wrong else "",
        "" if checked else "the file was not checked after the last change",
        "" if "finish" in names else "it was not finished",
    )


def _broken(lines: Sequence[tuple[str, str]], calls: tuple[PerformedCall, ...]) -> str:
    """Which lines were right, and are not any more."""
    pairs = zip(_edited(lines, calls), lines, strict=True)
    spoiled = [right for now, (right, was) in pairs if was == right and now != _plain(right)]
    return f"changed for the worse: {', '.join(spoiled)}" if spoiled else ""


def _plain(line: str) -> str:
    return "".join(line.split())


EDITING = (
    Scenario(
        name="edit_until_it_passes",
        about="two lines of a file are fixed as its check says, and no other",
        world=_edit_until_it_passes,
        ideal_calls=6,
        tags=frozenset({"editing", "reasoning"}),
        context_tokens=4096,
    ),
)
