"""ReplyJudges: the stages that judge the replies to a request, cached by the request's tools."""

import logging
from collections import OrderedDict
from collections.abc import Callable
from functools import cached_property, lru_cache, partial

import msgspec
from msgspec.structs import replace

from forge.proxy.policy import Applied, ModelPolicy, applied
from stages import Stage, enforce, on, pipeline, rescue, validate
from stages.batch_selection import kept_calls
from stages.effect import Execute
from stages.message import ToolCall
from stages.options import did_you_mean
from stages.reading.provenance import Sift, sieve
from stages.reading.replies import ReplyRead, reader
from stages.reading.toolset import Toolset, toolset_of
from stages.rescue.holding import Holding
from stages.rescue.markers import Openers, openers
from stages.rescue.names import name_search
from stages.rules import Calls, Limits, Rules
from stages.schema import Check, Fits, Misfit, checker, readable_schema, unchecked
from stages.state import Awaiting, State, Vetted
from stages.tool import ToolSpec
from stages.wire.server.request import NO_PARAMETERS, ServerRequest
from stages.wire.target import Mode, Target

_log = logging.getLogger("forge.proxy")

_UNLIMITED = 2**31
"""Maximum mistakes of one kind; the number of requests in a turn is the real limit."""

_KEPT = 64
"""Maximum number of cached tool sets: a client has two or three."""

_TOLD = 1024
"""Maximum number of warnings remembered so that each is logged once; they name tools and arguments of clients."""


class ReplyJudge:
    """A request's policy and rules, the stages that judge its replies, and the parser that holds text back.

    `applied` has all of the request's tools, `rules` only those that may be called.
    """

    def __init__(
        self,
        applied: Applied,
        rules: Rules,
        judging: Stage,
        *,
        tools: Toolset,
        reading: Callable[[], ReplyRead],
        openers: Openers,
    ) -> None:
        self.applied, self.rules, self.judging, self.tools = applied, rules, judging, tools
        self._reading, self._openers = reading, openers

    @cached_property
    def read(self) -> ReplyRead:
        """Finds a reply's calls and what is wrong with each; made for the first failed turn."""
        return self._reading()

    @cached_property
    def sift(self) -> Sift:
        """Finds the calls that only repeat what the model was shown."""
        return sieve(self.tools)

    @cached_property
    def holding(self) -> Holding:
        """Decides which text may be part of a call; made for the first stream."""
        return Holding(self._openers.anywhere, name_search([tool.name for tool in self.rules.tools]))


@on(Vetted)
def _hand_over(state: State, phase: Vetted) -> State:
    """Hand the calls over to the client, whose next request has their results."""
    refused = {refused.call_id for refused in phase.refused}
    calls = tuple(call for call in phase.calls if call.id not in refused)
    return state.to(Awaiting(effect=Execute(calls=calls), batch=phase.batch))


class ReplyJudges:
    """A cache of judges by tools; a schema is compiled when the first call of its tool is judged."""

    def __init__(self, *, max_retries: int, search_text: bool) -> None:
        self._kept: OrderedDict[tuple[object, ...], ReplyJudge] = OrderedDict()
        self._max_retries, self._rescue = max_retries, search_text
        self._warn = lru_cache(_TOLD)(_log.warning)
        """Logs each warning once."""
        self._openers = rescue.OPENERS if search_text else openers(())

    def of(self, request: ServerRequest, policy: ModelPolicy, mode: Mode) -> ReplyJudge:
        """The judge for this request under that policy, to a backend asked in that mode."""
        tools = tuple((spec.name, bytes(spec.parameters), spec.description) for spec in request.specs)
        key = (policy, tools, request.choice.mode, request.choice.tools, request.parallel, mode)
        found = self._kept.get(key)
        if found is None:
            found = self._kept[key] = self._made(request, policy, mode)
            if len(self._kept) > _KEPT:
                self._kept.popitem(last=False)
        else:
            self._kept.move_to_end(key)
        return found

    def _made(self, request: ServerRequest, policy: ModelPolicy, mode: Mode) -> ReplyJudge:
        asked = Rules(
            tools=tuple(map(_readable, request.specs)),
            on_text="nudge" if request.choice.mode == "required" else "accept",
            limits=Limits(
                max_retries_per_step=self._max_retries,
                max_tool_errors=self._max_retries,
                max_premature_attempts=_UNLIMITED,
                max_prereq_violations=_UNLIMITED,
                max_repeats=None,
            ),
            calls=Calls(rescue_enabled=self._rescue, batch="all" if request.parallel else "first"),
        )
        under = applied(policy, asked)
        self._tell(under.absent, request)
        rules = under.among(request.choice.tools)
        checks: dict[str, Check] = {spec.name: _LazyCheck(spec, self._warn) for spec in rules.tools}
        tools = toolset_of(rules.tools, checks)
        judge = validate(rules, Target(mode=mode, families=lambda: self._openers), tools=tools)
        keep = partial(_judged_calls if under.guards else kept_calls, rules)
        allowing = enforce(*under.guards, on_violation=policy.calls.on_violation, keep=keep)
        judging = pipeline(judge, allowing, _hand_over)
        in_text = mode != "native"
        reading = partial(reader, rules, in_text=in_text, families=lambda: self._openers, tools=tools)
        return ReplyJudge(under, rules, judging, tools=tools, reading=reading, openers=self._openers)

    def _tell(self, absent: tuple[str, ...], request: ServerRequest) -> None:
        """Log that the policy names these tools and the request does not offer them."""
        offered = [spec.name for spec in request.specs]
        for name in absent:
            meant = did_you_mean(name, offered)
            self._warn("the policy names %s, which a request does not offer: not enforced there.%s", name, meant)


def _judged_calls(rules: Rules, state: State, calls: tuple[ToolCall, ...]) -> tuple[tuple[ToolCall, ...], str]:
    """The calls to judge, limited in number: rules of order take time quadratic in the calls of a reply."""
    kept, told = kept_calls(rules, state, calls)
    return kept[: rules.calls.max_calls_per_reply], told


def _readable(tool: ToolSpec) -> ToolSpec:
    """The tool with a schema whose parameters can be read: clients may send anything."""
    try:
        _ = tool.properties, tool.required
    except (msgspec.DecodeError, UnicodeError):
        return replace(tool, parameters=NO_PARAMETERS)
    return tool


class _LazyCheck:
    """A check of a tool's arguments, compiled at its first use; against the valid part of a schema that is not valid.

    `warn` is told of parts of the schema that are not checked.
    """

    def __init__(self, spec: ToolSpec, warn: Callable[..., object]) -> None:
        self._name, self._parameters, self._warn = spec.name, spec.parameters, warn
        self._check: Check | None = None

    def __call__(self, text: str, /) -> Fits | Misfit:
        """Whether the arguments fit."""
        if self._check is None:
            schema = readable_schema(self._parameters)
            self._check = checker(schema)
            if sentence := unchecked(schema):
                self._warn("the tool %s: %s", self._name, sentence)
        return self._check(text)
