"""What the model is told of a call that cannot be read, or that no tool takes."""

from collections.abc import Sequence
from typing import assert_never

from stages.nudges.quoting import listed
from stages.nudges.replies import no_such_tool
from stages.objection import BadArguments, BesideDamage, Guessed, Unfit, UnknownTool
from stages.schema.problems import Problem


def text_for_unfit(tool: str, wrong: Unfit) -> str:
    """The text for a call of that name."""
    match wrong:
        case UnknownTool(known=known, nearest=nearest):
            return f"Not run: {no_such_tool(tool, nearest)}. Call one of: {listed(known)}."
        case BadArguments(problems=problems, cut=cut):
            return _bad_arguments(tool, problems, cut=cut)
        case Guessed(repairs=repairs):
            return (
                f"The call of {tool} was not run: its text is damaged ({listed(repairs)}), and {tool} "
                "is too important to guess what was meant. Send the call again as valid JSON."
            )
        case BesideDamage():
            return (
                f"{tool} was not run, because another call of the same reply cannot be read. "
                "Send both again, the calls in their order."
            )
        case _:
            assert_never(wrong)


def in_a_sentence(problems: Sequence[Problem]) -> str:
    """What does not fit in arguments, and where."""
    found = ((f"{one.path}: " if one.path else "", one) for one in problems)
    return "; ".join(f"{where}expected {one.expected}, got {one.found}" for where, one in found)


def _bad_arguments(tool: str, problems: Sequence[Problem], *, cut: bool) -> str:
    cause = "Your reply was cut off by its length limit, so the arguments are incomplete. " if cut else ""
    return (
        f"{cause}The call of {tool} was not run: {in_a_sentence(problems)}. "
        f"Call {tool} again with all of its arguments put right."
    )
