"""The workflows of the prefix report: an archive that is read page by page, and places to inspect one by one."""

from forge import Context, Limits, Workflow, tool
from forge.interpreters.scripted import call
from forge.tools.definition import Tool
from stages.compaction import Compactor
from stages.effect import Reply

TURNS = 40
REQUEST = f"Read pages 1 to {TURNS - 1} of the archive, one at a time and in order, then write the report."

CHRONICLE = """
the harbour was rebuilt after storm and every ship that came in spring paid a toll of twelve coins to keeper who
wrote names weights cargo into long grey books which nobody read until clerk from capital asked why grain cost
more each year than salt timber or copper although fields had never been so wide nor winters mild
"""
WORDS = CHRONICLE.split()


def text(page: int) -> str:
    """The page's text: 300 to 1,500 characters, always the same."""
    length = 300 + page * 397 % 1201
    words = [WORDS[(page * 31 + i * 7 + i * i // 11) % len(WORDS)] for i in range(length // 3)]
    return f"Page {page}. {' '.join(words)}"[:length]


def archive(compactor: Compactor, compact_to: float = 0.5) -> Workflow:
    """The workflow of the replayed run."""

    @tool(effect="read")
    def read_page(page: int) -> str:
        """Read one page of the archive."""
        return text(page)

    def write_report(summary: str) -> str:
        """Write the report on all pages."""
        return summary

    return Workflow(
        "archive",
        tools=[read_page, write_report],
        terminal_tool="write_report",
        system_prompt="You read the archive page by page and report what it says.",
        limits=Limits(max_iterations=TURNS),
        context=Context(compactor=compactor, compact_to=compact_to),
    )


def script() -> list[Reply]:
    """The replies of the replayed run."""
    return [
        *(call("read_page", page=page) for page in range(1, TURNS)),
        call("write_report", summary="The toll rose every year."),
    ]


PLACES = ("harbour", "market", "granary", "mint", "chapel", "archive", "mill", "bridge", "tower", "quarry")
INSPECT = "Inspect all places, beginning with the harbour, then report the word."


def inspect(place: str, before: str, then: str) -> Tool[[], str]:
    """The tool that inspects a place, once the one before it was; what it says ends with what to do then."""

    @tool(
        name=f"inspect_{place}",
        description=f"Inspect the {place}.",
        effect="read",
        prerequisites=[f"inspect_{before}"] if before else [],
    )
    def visit() -> str:
        return f"The {place} is inspected. {text(PLACES.index(place) + 3)}\n{then}"

    return visit


def inspection(compactor: Compactor, compact_to: float = 0.5) -> Workflow:
    """A workflow that a small model can finish by itself: each place names the next, the last gives a word."""
    then = [
        *(f"Inspect the {place} next." for place in PLACES[1:]),
        "This was the last place. Now report the word lantern.",
    ]

    def report(word: str) -> str:
        """Report the word that the last place gave."""
        return word

    places = list(map(inspect, PLACES, ("", *PLACES), then))
    return Workflow(
        "inspection",
        tools=[*places, report],
        required_steps=[place.name for place in places],
        terminal_tool="report",
        system_prompt="You inspect places, one after the other. Each names the next; the last gives a word to report.",
        limits=Limits(max_iterations=2 * len(PLACES)),
        context=Context(compactor=compactor, compact_to=compact_to),
    )
