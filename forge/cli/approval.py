"""The question about a call, in a terminal: what is going to run, and what the person says."""

from forge.cli.plain import printable
from forge.interpreters import Answer
from forge.interpreters.threads import in_thread, unheard
from stages.effect import Approved, Ask, Rejected, Settled, Unanswered
from stages.message import ToolCall


async def ask_person(effect: Ask) -> Answer:
    """Whoever sits at the terminal decides; anything but yes is no, and about a call in doubt leaves it open."""
    question = f"     may {effect.call.name} {printable(effect.call.arguments)} run?"
    if effect.problem:
        question = f"     these arguments are wrong: {printable(effect.problem)};{question}"
    if unsure := effect.in_doubt:
        begun = f"{unsure.name} {printable(unsure.arguments)}"
        question = (
            f"     {begun} was begun before, and nobody knows whether it took effect.\n{question}\n"
            "     [h] it happened before  [n] it did not  [y] run it whatever happened  [Enter] no"
        )
    answer = await _typed(f"{question} " if unsure else f"{question} [y/N] ")
    match answer, unsure:
        case None, _:
            return Unanswered(digest=effect.digest, reason="nobody answered in the terminal")
        case (("y" | "yes"), _):
            return Approved(digest=effect.digest)
        case ("h" | "n") as found, ToolCall():
            return Settled(digest=effect.digest, happened=found == "h")
        case _:
            return Rejected(digest=effect.digest, reason="the user said no")


async def _typed(question: str) -> str | None:
    """What is typed in answer, in lower case; None where nothing more will come."""
    try:
        return str(await in_thread(lambda: input(question), unheard)).strip().lower()
    except EOFError:
        return None
