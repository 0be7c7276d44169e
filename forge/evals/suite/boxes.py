"""Ten boxes, each with the code of the next and a long text, in a context that holds about half of them."""

from dataclasses import dataclass
from itertools import pairwise

from forge import Workflow
from forge.evals.scenario import Scenario, Trajectory, World
from forge.evals.suite.checks import first_of, sent
from forge.evals.suite.drawing import Draw
from forge.evals.suite.lookups import SYSTEM, found, read
from stages.rules import Limits, Use

_WORDS = ("lantern", "harbour", "walnut", "compass", "saffron", "glacier", "mandolin", "orchard", "pebble", "thistle")
_PROSE = (
    "The box is made of dark wood and smells of cedar. Inside lies a folded letter, tied with a thread, and under it "
    "an old map of the coast with the lighthouses drawn in red ink. Somebody has written the depth of the water beside "
    "each of them, and the names of ships that nobody remembers. The letter speaks of a long winter, of ice in the "
    "harbour and of bread that had to be shared, and it ends without a name. A dried flower falls out of it."
)


@dataclass(frozen=True)
class _Boxes:
    contents: dict[str, dict[str, str]]

    def open_box(self, code: str) -> dict[str, str]:
        """Open a box and see what is in it.

        Args:
            code: The box's code.
        """
        return found(self.contents, code, "box")

    def report_word(self, word: str) -> str:
        """Report the secret word, once it is found.

        Args:
            word: The secret word.
        """
        return f"Reported: {word}."


def _chain(seed: int) -> World:
    draw = Draw(seed)
    codes, word = [draw.id(letter, 3) for letter in "ABCDEFGHJK"], draw.choice(_WORDS)
    linked = {code: {"letter": _PROSE, "next_box": following} for code, following in pairwise(codes)}
    boxes = _Boxes({**linked, codes[-1]: {"letter": _PROSE, "secret_word": word}})
    workflow = Workflow(
        "chain",
        tools=[read(boxes.open_box), boxes.report_word],
        terminal_tool="report_word",
        required_steps=["open_box"],
        order=[Use(tool="open_box", at_least=10)],
        grounded={"report_word": ("word",), "open_box": ("code",)},
        system_prompt=SYSTEM,
        limits=Limits(max_iterations=25),
    )

    def right(trajectory: Trajectory) -> str:
        opened = [call.arguments.get("code") for call in trajectory.of("open_box")]
        problem = "" if codes[-1] in opened else "the last box was not opened"
        return first_of(problem, sent(trajectory, "report_word", word=word))

    message = (
        f"There are ten boxes. Open box {codes[0]}: it holds the code of the next box, and so on; the last one holds a "
        "secret word. Open one after the other until you find it, then report it."
    )
    return World(workflow=workflow, messages=(message,), right=right)


BOXES = (
    Scenario(
        name="chain",
        about="ten steps of which the context holds about half",
        world=_chain,
        ideal_calls=11,
        tags=frozenset({"orders", "compaction"}),
        context_tokens=2048,
        not_counted=frozenset({"no_compact", "bare"}),  # without compaction the boxes outgrow the context
    ),
)
