"""Order: in which order and how often tools may be used, beyond required steps and prerequisites (D16).

Only successful calls count. What is legal is asked here by `stages.rules.legal`, by the guard and by corrections.
"""

from msgspec import Struct


class Use(Struct, frozen=True, kw_only=True):
    """The rules for one tool.

    `at_step` n: the n-th successful call of the run must be of this tool. `after`, `before`: these must have succeeded
    already, must not have yet. `at_least`: so often before a terminal tool may be called, `at_most`: no more than that.
    `consecutive` False: not twice in a row.
    """

    tool: str
    at_step: int | None = None
    after: tuple[str, ...] = ()
    before: tuple[str, ...] = ()
    at_least: int = 0
    at_most: int | None = None
    consecutive: bool = True


def obstacle(order: tuple[Use, ...], done: tuple[str, ...], name: str, ahead: tuple[str, ...] = ()) -> str | None:
    """Why the tool may not be called now, None if it may. `done` are the names of the successes, in their order.

    `ahead` are the calls before it in the same reply: they count where it is about how often, as if they succeeded.
    """
    if not order:
        return None
    forced = [use.tool for use in order if use.at_step == len(done) + 1]
    if forced and name not in forced:
        return f"call number {len(done) + 1} must be {' or '.join(forced)}"
    reasons = (_place(use, done) or _number(use, done + ahead) for use in order if use.tool == name)
    return next((reason for reason in reasons if reason), None)


def lacking(order: tuple[Use, ...], done: tuple[str, ...]) -> tuple[str, ...]:
    """The tools that have not been used as often as they must be before the run may end."""
    return tuple(use.tool for use in order if use.at_least and done.count(use.tool) < use.at_least)


def _place(use: Use, done: tuple[str, ...]) -> str | None:
    if missing := [tool for tool in use.after if tool not in done]:
        return f"it comes after {', '.join(missing)}"
    late = [tool for tool in use.before if tool in done]
    return f"it comes before {', '.join(late)}, and that was already called" if late else None


def _number(use: Use, done: tuple[str, ...]) -> str | None:
    if use.at_most is not None and done.count(use.tool) >= use.at_most:
        return f"it may be used {use.at_most} times, and it was"
    if not use.consecutive and done and done[-1] == use.tool:
        return "it may not be used twice in a row: call another tool in between"
    return None
