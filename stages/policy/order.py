"""Order: in which order and how often tools may be used, beyond required steps and prerequisites.

Only successful calls count. `stages.policy.rules.legal_tools`, the guard and corrections all ask here what is legal.
The rules hold among the calls of one reply as they do between replies.
"""

from msgspec import Struct


class Use(Struct, frozen=True, kw_only=True):
    """The rules for one tool.

    - `at_step` n: the n-th successful call of the run must be of this tool.
    - `after`, `before`: tools that must have succeeded already, or must not have yet.
    - `at_least`: minimum number of successes before a terminal tool may be called; `at_most`: maximum.
    - `consecutive` False: not twice in a row.
    """

    tool: str
    at_step: int | None = None
    after: tuple[str, ...] = ()
    before: tuple[str, ...] = ()
    at_least: int = 0
    at_most: int | None = None
    consecutive: bool = True


def obstacle(order: tuple[Use, ...], done: tuple[str, ...], name: str, ahead: tuple[str, ...] = ()) -> str | None:
    """Why the tool may not be called now; None: it may. `done` are the names of the successful calls, in order.

    `ahead` are the calls that run before it in the same reply. Nobody knows yet which of them will succeed, so the call
    is allowed only if it would be, whichever do.
    """
    if not order:
        return None
    for number in range(len(done) + 1, len(done) + len(ahead) + 2):
        forced = [use.tool for use in order if use.at_step == number]
        if forced and name not in forced:
            return f"call number {number} must be {' or '.join(forced)}"
    reasons = (_place(use, done, ahead) or _number(use, done, ahead) for use in order if use.tool == name)
    return next((reason for reason in reasons if reason), None)


def underused_tools(order: tuple[Use, ...], done: tuple[str, ...]) -> tuple[str, ...]:
    """The tools that still have to be used more often before the run may end."""
    return tuple(use.tool for use in order if use.at_least and done.count(use.tool) < use.at_least)


def _place(use: Use, done: tuple[str, ...], ahead: tuple[str, ...]) -> str | None:
    if missing := [tool for tool in use.after if tool not in done]:
        wait = ": wait for that result" if {*missing} <= {*ahead} else ""
        return f"it comes after {', '.join(missing)}{wait}"
    if late := [tool for tool in use.before if tool in done]:
        return f"it comes before {', '.join(late)}, and that was already called"
    late = [tool for tool in use.before if tool in ahead]
    return f"it comes before {', '.join(late)}: call it first, by itself" if late else None


def _number(use: Use, done: tuple[str, ...], ahead: tuple[str, ...]) -> str | None:
    used = done.count(use.tool)
    if use.at_most is not None and used + ahead.count(use.tool) >= use.at_most:
        times = "1 time" if use.at_most == 1 else f"{use.at_most} times"
        return f"already used its maximum of {times}" if used else f"it may be used at most {times}"
    if not use.consecutive and (use.tool in ahead or done[-1:] == (use.tool,)):
        return "it may not be used twice in a row: call another tool in between, and wait for its result"
    return None
