"""What the model is told of a call that the rules forbid."""

from collections.abc import Sequence
from typing import assert_never

from stages.ledger import Listed
from stages.nudges import values
from stages.nudges.quoting import first_few, listed, may_call, quote
from stages.objection import (
    Custom,
    EchoedArgument,
    Forbidden,
    Incomplete,
    Miscalculated,
    NeedsDecision,
    OutOfOrder,
    Placeholder,
    PrerequisiteMissing,
    Repeated,
    SlippedNumber,
    StepsPending,
    Ungrounded,
)


def text_for_forbidden(tool: str, wrong: Forbidden) -> str:
    """The text for a call of that tool."""
    match wrong:
        case StepsPending(steps=steps, attempt=attempt, again=again, left=left, denied=denied):
            return _step(tool, steps, attempt, denied) + _out_of_date(again) + _values_left(left)
        case PrerequisiteMissing(tools=missing, match=match, again=again, denied=denied):
            return _prerequisite(tool, missing, match, denied) + _out_of_date(again)
        case NeedsDecision(tools=needed, allowed=allowed):
            return _needs_a_decision(tool, needed, allowed)
        case OutOfOrder(reason=reason, allowed=allowed):
            return f"{tool} was not run: {reason}.{may_call(allowed)}"
        case Placeholder():
            return _no_value(tool, wrong)
        case Ungrounded():
            return values.ungrounded(tool, wrong)
        case Miscalculated():
            return values.miscalculated(tool, wrong)
        case Repeated():
            return _repeated(tool, wrong)
        case Incomplete(problem=problem):
            return f"{tool} was not accepted: {problem} Put that right, then call {tool} again."
        case EchoedArgument(argument=argument):
            what = f"its {argument} repeats a note that was meant for you, not for the user"
            return f"{tool} was not run: {what}. Call {tool} again, in your own words."
        case SlippedNumber(argument=argument, said=said, given=given):
            what = f"its {argument} says {said}, and what was given is {given}"
            return f"{tool} was not run: {what}. Call {tool} again with the number as it was given."
        case Custom(text=text):
            return text
        case _:
            assert_never(wrong)


def _step(tool: str, pending: Sequence[str], attempt: int, denied: Sequence[str]) -> str:
    """More pressing from the first to the third; to call a step again at once would be no help if it said no."""
    if denied:
        first = "STOP. " if attempt > 2 else ""
        return f"{first}You cannot call {tool} yet. First complete: {listed(pending)}.{_denied(denied)}"
    match attempt:
        case 1:
            return f"You cannot call {tool} yet. First complete: {listed(pending)}. Call {pending[0]} now."
        case 2:
            return f"{tool} is still refused. You must call one of these tools now: {listed(pending)}. Pick one."
        case _:
            return (
                f"STOP. Do NOT call {tool}. Your next reply MUST be a call to one of: {listed(pending)}. "
                f"Tools run only after your reply ends, so reply with that one call and nothing else."
            )


def _denied(steps: Sequence[str]) -> str:
    return (
        f" The last answer of {listed(steps)} says that it is not done: put that right with the other tools, then "
        f"call {listed(steps)} again."
    )


def _out_of_date(again: Sequence[str]) -> str:
    return f" What {listed(again)} found has changed since." if again else ""


def _values_left(left: Sequence[Listed]) -> str:
    return "".join(f" {step.tool} has still to be called for each of: {first_few(step.values)}." for step in left)


def _prerequisite(tool: str, missing: Sequence[str], match: Sequence[str], denied: Sequence[str]) -> str:
    same = f" with the same {listed(match)}" if match else ""
    if denied:
        return f"You cannot call {tool} yet. It needs {listed(missing)}{same}.{_denied(denied)}"
    return f"You cannot call {tool} yet. First call {listed(missing)}{same}; call {missing[0]} now."


def _needs_a_decision(tool: str, needed: Sequence[str], allowed: Sequence[str]) -> str:
    return (
        f"You cannot call {tool} yet. It needs {listed(needed)}, and nobody knows whether that took "
        f"effect: a person has to find out.{may_call(allowed)}"
    )


def _no_value(tool: str, wrong: Placeholder) -> str:
    match wrong.copied:
        case "":
            return _placeholder(tool, wrong.arguments, again=wrong.again)
        case "description":
            return _description(tool, wrong.arguments, again=wrong.again)
        case "example":
            return _example(tool, wrong.arguments, again=wrong.again)
        case other:
            assert_never(other)


def _placeholder(tool: str, found: Sequence[tuple[str, str]], *, again: bool) -> str:
    what = "; ".join(f"{argument} is {quote(text, 80)!r}" for argument, text in found)
    then = f"; then call {tool} with it" if again else ""
    return (
        f"{tool} was not run: {what}, which stands for a value and is none. First call the tool that "
        f"finds the value and wait for its result{then}."
    )


def _description(tool: str, found: Sequence[tuple[str, str]], *, again: bool) -> str:
    names = listed([argument for argument, _ in found])
    then = f" Write the value itself, then call {tool} again." if again else ""
    return f"{tool} was not run: the value of {names} is only a description.{then}"


def _example(tool: str, found: Sequence[tuple[str, str]], *, again: bool) -> str:
    what = "; ".join(f"{argument} is {quote(text, 80)!r}" for argument, text in found)
    then = f", then call {tool} with it" if again else ""
    return (
        f"{tool} was not run: {what}, which is only an example in a description. Take the value from what the user "
        f"said or from a result, or call the tool that finds it{then}."
    )


def _repeated(tool: str, wrong: Repeated) -> str:
    instead = [other for other in wrong.others if other != tool]
    new = f"call {tool} with another value, such as {listed(map(quote, wrong.values))}" if wrong.values else ""
    other = f"call one of: {listed(instead)}" if instead else ""
    then = " or ".join(filter(None, (other, new))) or "call it with other arguments"
    if wrong.written:
        why = f"you have made this very call {wrong.times} times, and it was done. Do not do it again;"
    else:
        why = f"you have made this very call {wrong.times} times, and its answer stays the same. Use that answer; then"
    return f"{tool} was not run: {why} {then}."
