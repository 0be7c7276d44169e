"""What a policy says: the rules of a session and how a model is asked, for all models and for some by name."""

from collections.abc import Mapping
from typing import Annotated, Literal

from msgspec import Meta, Struct, field

from forge.proxy.shaping import Shaping
from stages.rules import Change, Each, OnViolation, Use, matches
from stages.tool import Prerequisite

Names = str | tuple[str, ...]
"""One name, or several."""

ERRORS = ("Error:*", "Traceback (most recent call last)*")
"""How results begin in the history of many clients when a tool has failed."""


class PolicyPrerequisite(Prerequisite, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A prerequisite as a table."""


class PolicyChange(Change, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What makes results out of date, as a table."""


class PolicyEach(Each, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The listed values that a tool has to be called with, as a table."""


class PolicyUse(Use, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The rules of order and number for one tool, as a table."""

    again_after: tuple[str | PolicyChange, ...] = ()
    each_of: PolicyEach | None = None


class ToolPolicy(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is to be known of one tool, in the words of `@tool`.

    `errors` are patterns of results that are errors, with `*` for anything; None: those of the model's policy.
    """

    effect: Literal["read", "write"] = "write"
    prerequisites: str | tuple[str | PolicyPrerequisite, ...] = ()
    grounded: str | tuple[str, ...] | dict[str, Names] = ()
    repeatable: bool = False
    errors: tuple[str, ...] | None = None


class ModelPolicy(Shaping, Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, eq=False):
    """What holds for a model, in the words of `Workflow`. A rule that is not written is not enforced.

    `required_steps` come before a call of a `terminal_tool`, and before an answer in words. `max_tool_calls` is the
    number of calls that the client may have run. `errors` are patterns of results that are errors, with `*` for
    anything. `scope` is what the rules look at: the whole `session`, or what came since the last `answer` in words.
    How requests are shaped is in `Shaping`.
    """

    required_steps: Names = ()
    terminal_tool: Names = ()
    order: tuple[PolicyUse, ...] = ()
    max_repeats: Annotated[int, Meta(ge=1)] | None = None
    max_tool_calls: Annotated[int, Meta(ge=1)] | None = None
    on_violation: OnViolation = "block_all"
    scope: Literal["session", "answer"] = "session"
    errors: tuple[str, ...] = ERRORS
    tools: Mapping[str, ToolPolicy] = field(default_factory=dict)


NO_POLICY = ModelPolicy()


class Policy(Struct, frozen=True):
    """What holds for every model, and for those whose name matches a pattern; the first pattern counts."""

    general: ModelPolicy = NO_POLICY
    models: tuple[tuple[str, ModelPolicy], ...] = ()

    def of(self, *names: str) -> ModelPolicy:
        """What holds for the model of the first of these names that a pattern matches, in capitals or not."""
        found = (own for name in names for pattern, own in self.models if matches(pattern.casefold(), name.casefold()))
        return next(found, self.general)
