"""Policies: rules for sessions and requests, by model."""

from collections.abc import Collection, Iterator, Mapping
from typing import Literal

import msgspec
from msgspec import Raw, Struct, field
from msgspec.structs import replace

from forge.proxy.shaping import Shaping
from forge.toml_tables import joined
from forge.tools.definition import grounds, prerequisites_of, several
from forge.wildcards import matches
from forge.workflow.checks import grounded_specs, guard_mistakes, mistakes
from stages.effect import Budget
from stages.guards import guards_of, tool_calls
from stages.message import History, Tool, messages_with_calls
from stages.objection import Guard
from stages.options import AtLeastOne, Options
from stages.order import Change, Use
from stages.recounting import last_question, recount
from stages.rules import OnViolation, Rules
from stages.state import Cleared, Ledger
from stages.tool import Grounded, Prerequisite, ToolSpec

# The contents of a policy: rules for sessions and requests, for all models and for models by name.

ERRORS = ("Error:*", "Traceback (most recent call last)*")
"""Patterns of results that many clients send when a tool has failed."""


class ToolPolicy(Options, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The properties of one tool, as in `@tool`.

    `errors` are patterns of results that are errors, with `*` as wildcard; None: those of the model's policy.
    """

    effect: Literal["read", "write"] = "write"
    prerequisites: str | tuple[str | Prerequisite, ...] = ()
    grounded: str | tuple[str, ...] | dict[str, str | tuple[str, ...]] = ()
    repeatable: bool = False
    errors: tuple[str, ...] | None = None


class PolicyLimits(Options, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The `Limits` that a proxy can enforce, as a table; the others are the client's business."""

    max_tool_calls: AtLeastOne | None = None
    max_repeats: AtLeastOne | None = None


class PolicyCalls(Options, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The field of `Calls` that clients do not decide, as a table."""

    on_violation: OnViolation = "block_all"


class ModelPolicy(Shaping, frozen=True, kw_only=True, forbid_unknown_fields=True, eq=False):
    """The policy for a model, in the terms of `Workflow`. Only rules that are set are enforced.

    `required_steps` must precede a call of a `terminal_tool` and a text answer. `limits.max_tool_calls` is the maximum
    number of calls that the client may run. `errors` are patterns of results that are errors, with `*` as wildcard.
    `scope` is what the rules look at: the whole `session`, or everything since the last text `answer`. The options for
    requests are in `Shaping`.
    """

    required_steps: str | tuple[str, ...] = ()
    terminal_tool: str | tuple[str, ...] = ()
    order: tuple[Use, ...] = ()
    limits: PolicyLimits = PolicyLimits()
    calls: PolicyCalls = PolicyCalls()
    scope: Literal["session", "answer"] = "session"
    errors: tuple[str, ...] = ERRORS
    tools: Mapping[str, ToolPolicy] = field(default_factory=dict)


NO_POLICY = ModelPolicy()


_MODELS_LIMIT = 100
"""Maximum number of patterns of models: each one's rules are checked together with the general ones."""


class Policy(Options, frozen=True):
    """The policy for all models, and policies for models whose name matches a pattern; the first match counts."""

    general: ModelPolicy = NO_POLICY
    models: tuple[tuple[str, ModelPolicy], ...] = ()

    def contradictions(self, wrong: Collection[str]) -> Iterator[str]:
        """Those in the general rules, then those of each model that the general rules do not have."""
        if wrong:
            return
        if len(self.models) > _MODELS_LIMIT:
            yield f"model: there are {len(self.models)} tables; the maximum is {_MODELS_LIMIT}"
            return
        general = _refused(self.general)
        yield from general
        for pattern, own in self.models:
            header = joined("model", pattern)
            yield from (f"[{header}] {said}" for said in _refused(own) if said not in general)

    def of(self, *names: str) -> ModelPolicy:
        """The policy of the first of these names that a pattern matches, ignoring case."""
        found = (own for name in names for pattern, own in self.models if matches(pattern.casefold(), name.casefold()))
        return next(found, self.general)


# The rules of a policy for the tools that a request offers, and the ledger of its session. Pure.
#
# Clients name their tools differently, and may offer different ones in each request. A rule about a tool that the
# request does not offer is ignored: nobody could follow it.


class Applied(Struct, frozen=True, kw_only=True):
    """A policy applied to a set of tools. `absent` are the tools and arguments that it names and they lack."""

    rules: Rules
    guards: tuple[Guard, ...]
    policy: ModelPolicy
    absent: tuple[str, ...] = ()

    def among(self, names: Collection[str]) -> Rules:
        """The rules for a reply that may call only these tools; an empty collection means all."""
        if not names:
            return self.rules
        tools = tuple(tool for tool in self.rules.tools if tool.name in names)
        return replace(self.rules, tools=tools, order=tuple(use for use in self.rules.order if use.tool in names))

    def ledger(self, history: History) -> Ledger:
        """The ledger of the session so far."""
        if not self.guards:
            return Ledger()
        counted = history if self.policy.scope == "session" else history[last_question(history) :]
        budget = Budget(tool_calls=self.policy.limits.max_tool_calls)
        return recount(self.rules, counted, budget=budget, is_error=self._is_error)

    def record(self, given: History, sent: History) -> tuple[Cleared, ...]:
        """The client's results, if the model is shown fewer of them and some arguments are grounded in them.

        Values that were compacted away still count as seen.
        """
        if sent is given or not any(tool.grounded for tool in self.rules.tools):
            return ()
        return tuple(
            Cleared(call_id=one.call_id, name=made.name, arguments=made.arguments, text=one.text, status=one.status)
            for one, made in messages_with_calls(given)
            if isinstance(one, Tool) and made
        )

    def _is_error(self, tool: str, result: str) -> bool:
        own = self.policy.tools.get(tool)
        patterns = self.policy.errors if own is None or own.errors is None else own.errors
        return any(matches(pattern, result) for pattern in patterns)


def applied(policy: ModelPolicy, rules: Rules) -> Applied:
    """The policy applied to the request's own rules, which have all of its tools, with readable schemas."""
    known = {tool.name: tool for tool in rules.tools}
    ends = several(policy.terminal_tool)
    tools = (_with_policy(policy.tools.get(tool.name), tool, known) for tool in rules.tools)
    ruled = replace(
        rules,
        tools=tuple(replace(tool, effect="terminal") if tool.name in ends else tool for tool in tools),
        required=tuple(name for name in several(policy.required_steps) if name in known),
        order=tuple(_among(use, known) for use in policy.order if use.tool in known),
        limits=replace(rules.limits, max_repeats=policy.limits.max_repeats),
    )
    absent = tuple(dict.fromkeys((*(name for name in _named(policy) if name not in known), *_lacking(policy, known))))
    limit = (tool_calls(ruled),) if policy.limits.max_tool_calls is not None else ()
    if ruled == rules and not limit:
        # Nothing in the policy is about these tools: without guards, no ledger is counted for the session either.
        return Applied(rules=rules, guards=(), policy=policy, absent=absent)
    return Applied(rules=ruled, guards=(*guards_of(ruled), *limit), policy=policy, absent=absent)


def _refused(policy: ModelPolicy) -> tuple[str, ...]:
    """A sentence for each contradiction that a workflow would refuse, too; assumes that all named tools exist."""
    schema = Raw(msgspec.json.encode({"type": "object", "properties": {name: {} for name in _arguments(policy)}}))
    tools = (ToolSpec(name=name, description="", parameters=schema) for name in dict.fromkeys(_named(policy)))
    rules = applied(policy, Rules(tools=tuple(tools), on_text="accept")).rules
    return (*mistakes(rules, {*rules.terminal}), *guard_mistakes(rules, {}))


def _named(policy: ModelPolicy) -> Iterator[str]:
    """The tools that the policy names."""
    yield from (*several(policy.required_steps), *several(policy.terminal_tool))
    for use in policy.order:
        yield from use.names
    for name, own in policy.tools.items():
        yield name
        yield from (needed.tool for needed in prerequisites_of(own.prerequisites))
        yield from (source for bound in grounds(own.grounded) for source in bound.sources)


def _lacking(policy: ModelPolicy, known: Mapping[str, ToolSpec]) -> Iterator[str]:
    """The arguments that two tools must share, and that one of them lacks."""
    for name, own in policy.tools.items():
        for needed in prerequisites_of(own.prerequisites) if name in known else ():
            both = (known[name], known[needed.tool]) if needed.tool in known and needed.match_arg else ()
            lacking = (tool.name for tool in both if needed.match_arg not in tool.properties)
            yield from (f"the argument {needed.match_arg} of {tool}" for tool in lacking)
    for use in policy.order:
        if use.each_of and use.tool in known and use.each_of.argument not in known[use.tool].properties:
            yield f"the argument {use.each_of.argument} of {use.tool}"


def _arguments(policy: ModelPolicy) -> Iterator[str]:
    """The arguments of tools that the policy names."""
    yield from (use.each_of.argument for use in policy.order if use.each_of)
    for own in policy.tools.values():
        yield from (needed.match_arg for needed in prerequisites_of(own.prerequisites) if needed.match_arg)
        yield from (bound.argument for bound in grounds(own.grounded))


def _with_policy(own: ToolPolicy | None, tool: ToolSpec, known: Mapping[str, ToolSpec]) -> ToolSpec:
    if own is None:
        return tool
    ruled = replace(
        tool,
        effect=own.effect,
        repeatable=own.repeatable,
        prerequisites=tuple(
            needed for needed in prerequisites_of(own.prerequisites) if _can_be_met(needed, tool, known)
        ),
    )
    bound = {g.argument: sources for g in grounds(own.grounded) if (sources := _sources(g, known)) is not None}
    return grounded_specs((ruled,), {tool.name: bound})[0]


def _can_be_met(needed: Prerequisite | Change, tool: ToolSpec, known: Mapping[str, ToolSpec]) -> bool:
    """Whether the needed tool exists, and both tools have the argument that must match."""
    if needed.tool not in known or needed.match_arg is None:
        return needed.tool in known
    return all(needed.match_arg in one.properties for one in (tool, known[needed.tool]))


def _sources(bound: Grounded, known: Mapping[str, ToolSpec]) -> tuple[str, ...] | None:
    """The tools that the value may come from, empty for any; None if none of them is offered."""
    sources = tuple(name for name in bound.sources if name in known)
    return sources if sources or not bound.sources else None


def _among(use: Use, known: Mapping[str, ToolSpec]) -> Use:
    after, before = (tuple(name for name in names if name in known) for names in (use.after, use.before))
    changes = tuple(one for one in use.changes if _can_be_met(one, known[use.tool], known))
    each = use.each_of
    listed = each and each.tool in known and each.argument in known[use.tool].properties
    return replace(use, after=after, before=before, again_after=changes, each_of=each if listed else None)
