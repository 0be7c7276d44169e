"""What the model is told of calls that did not run because of others in the same reply."""

from collections.abc import Sequence

from stages.nudges.quoting import listed


def beside_a_refused_call(name: str) -> str:
    """For a call that was fine, in a batch that was refused because of another."""
    return f"[NotRun] {name} was not run, because another call of the same reply was refused. Call it again if needed."


def beside_a_skipped_step(name: str, tool: str) -> str:
    """For a call in a batch that was refused because its terminal call came too early."""
    return (
        f"[StepEnforcementError] {name} was not run, because {tool} in the same reply came too early. "
        f"Repeat it without {tool} if it is still needed; {tool} comes after you have seen the results that it needs."
    )


def cut_beside(damage: str) -> str:
    """For a call that cannot be read, beside others that can."""
    return f"[NotRun] Your reply held one more call, which was not run: {damage} Send that call again if it is needed."


def only_the_first(name: str, others: Sequence[str]) -> str:
    """For a reply of several calls where one at a time is asked for."""
    return (
        f"Only the first call of your reply was made, {name}; not {listed(others)}. Make one call at a time, "
        "with values from the results that you have seen."
    )


def made_once(names: Sequence[str]) -> str:
    """For a reply that makes the very same call several times."""
    return (
        f"Your reply makes the same call of {listed(names)} more than once; it was made once. If it is needed again, "
        "call it again now that you have seen its result."
    )


def waits(run: Sequence[str], others: Sequence[str]) -> str:
    """For a reply with calls that depend on what others of it will find."""
    return (
        f"Only {listed(run)} was called. {listed(others)} must wait for that result: now that you have it, call "
        f"{others[0]} with the values in it."
    )


def too_many_calls(name: str, most: int) -> str:
    """For a call beyond the maximum of one reply."""
    return f"{name} was not run: of one reply, the first {most} calls are run. Call it again if it is still needed."
