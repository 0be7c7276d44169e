"""Twins: a scenario whose tools return the same whatever they are called with, and one whose tools look it up.

The second, `NAME_stateful`, has entries that nobody asked about, and its check looks at the calls as well.
"""

from functools import partial
from typing import Protocol

from msgspec.structs import replace

from forge.evals.scenario import Scenario, World


class _Twin(Protocol):
    def __call__(self, seed: int, *, stateful: bool) -> World: ...


def twins(
    name: str,
    about: str,
    world: "_Twin",
    *,
    ideal_calls: int,
    tags: set[str],
    not_counted: frozenset[str] = frozenset(),
) -> tuple[Scenario, Scenario]:
    """The two scenarios; `stateful` tells its tools to look things up."""
    static = Scenario(
        name=name,
        about=about,
        world=partial(world, stateful=False),
        ideal_calls=ideal_calls,
        tags=frozenset({"seeds", *tags}),
        not_counted=not_counted,
    )
    stateful = replace(
        static,
        name=f"{name}_stateful",
        about=f"{about}; what was looked up is checked too",
        world=partial(world, stateful=True),
        tags=frozenset({"stateful", *static.tags}),
    )
    return static, stateful
