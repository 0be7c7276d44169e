"""Whether a regular expression may take more than linear time: decided from its structure, not timed.

The expression is read as an automaton. A backtracking matcher takes quadratic time, or worse, where some text
leads from a loop into itself in two ways, or from one loop to itself, to a second one, and from that to itself: it
then tries every place at which the text may be divided (Weber and Seidl, "On the degree of ambiguity of finite
automata", 1991). A search begins anew at every character: for it, a loop over all characters stands in front.
"""

import re
from collections.abc import Iterator

from tests.automaton import Automaton, Edge


def is_linear(pattern: re.Pattern[str], *, search: bool) -> bool:
    """Whether matching takes time linear in the text; `search`: begun anew at every character."""
    automaton = Automaton(pattern, search=search)
    steps = _between_loops(automaton.steps())
    reach = {state: _reached(steps, state) for state in steps}
    looped = [state for state in steps if state in reach[state]]
    home = {state: {other for other in reach[state] if state in reach[other]} for state in looped}
    # What may end wherever it is never fails there, and nothing is tried again.
    pending = [state for state in looped if not automaton.may_end(state)]
    return not any(
        _two_ways(steps, home[one], home[other], one, other)
        for one in looped
        for other in pending
        if one != other and other in reach[one]
    )


def _between_loops(steps: dict[int, list[Edge]]) -> dict[int, list[Edge]]:
    """The states on loops and on the ways between them: the others are left by every text, or never come back."""
    while True:
        entered = {to for edges in steps.values() for _, to in edges}
        kept = {
            state: [(characters, to) for characters, to in edges if to in steps]
            for state, edges in steps.items()
            if state in entered and any(to in steps for _, to in edges)
        }
        if len(kept) == len(steps):
            return kept
        steps = kept


def _reached(steps: dict[int, list[Edge]], state: int) -> set[int]:
    seen: set[int] = set()
    todo = [state]
    while todo:
        new = {to for _, to in steps[todo.pop()]} - seen
        seen |= new
        todo += new
    return seen


def _two_ways(steps: dict[int, list[Edge]], home: set[int], beyond: set[int], one: int, other: int) -> bool:
    """Whether one text leads from `one` to itself, from `one` to `other`, and from `other` to itself."""
    seen: set[tuple[int, int, int]] = set()
    todo = [(one, one, other)]
    while todo:
        following = set(_together(steps, home, beyond, todo.pop())) - seen
        if (one, other, other) in following:
            return True
        seen |= following
        todo += following
    return False


def _together(
    steps: dict[int, list[Edge]], home: set[int], beyond: set[int], at: tuple[int, int, int]
) -> Iterator[tuple[int, int, int]]:
    """Where three states lead by the same character, the first and the last within their loops."""
    for x, first in steps[at[0]]:
        for y, last in steps[at[2]]:
            if x & y and first in home and last in beyond:
                yield from ((first, middle, last) for z, middle in steps[at[1]] if x & y & z)
