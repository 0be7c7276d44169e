"""Workflow: from functions and rules to the state that a run begins with and the pipeline that drives it."""

import logging
import re
from collections.abc import Callable, Mapping, Sequence
from typing import get_args

import msgspec
from msgspec.structs import replace

from forge.connection import Connection
from forge.errors import DefinitionError
from forge.tool import Tool, tool
from stages import Stage, compact, enforce, execute, fold, pipeline, send, serialize, validate
from stages.compaction import Compactor, ContextBudget, TieredCompact
from stages.fold import FailedAttempts, Reasoning
from stages.guards import prerequisites, required_steps
from stages.message import Assistant, History, System, User, sound, turn_of
from stages.rescue import FAMILIES, Family
from stages.rescue.template import template_family
from stages.rules import OnText, RepairLimits, Rules
from stages.serialize import Mode, overhead
from stages.state import Budget, Ledger, State
from stages.tool import ToolSpec
from stages.verdict import Guard


class Workflow:
    """Tools, the steps that are required, and the tool that ends the run.

    Every mistake in the definition is reported at once, as a DefinitionError, before anything runs.

    Attributes: `rules` (the core's form of it), `functions` (by tool name), `name`.
    """

    def __init__(
        self,
        name: str,
        *,
        tools: Sequence[Tool[..., object] | Callable[..., object]],
        terminal_tool: str | Sequence[str] = (),
        required_steps: str | Sequence[str] = (),
        system_prompt: str = "",
        max_iterations: int = 10,
        max_retries_per_step: int = 3,
        max_tool_errors: int = 2,
        max_tokens: int | None = None,
        max_seconds: float | None = None,
        on_text: OnText = "nudge",
        rescue_enabled: bool = True,
        repair_limits: RepairLimits | None = None,
        compactor: Compactor | None = None,
        reasoning_replay: Reasoning = "none",
        failed_attempts: FailedAttempts = "keep",
        guards: Sequence[Guard] = (),
        families: Sequence[Family] = (),
    ) -> None:
        self.name = name
        self.system_prompt = system_prompt
        self.budget = Budget(calls=max_iterations, tokens=max_tokens, seconds=max_seconds)
        self._compactor = compactor or TieredCompact()
        self._reasoning: Reasoning = reasoning_replay
        self._failed_attempts: FailedAttempts = failed_attempts
        self._guards = tuple(guards)
        self._families = tuple(families)
        made = [t if isinstance(t, Tool) else tool(t) for t in tools]
        ends = {terminal_tool} if isinstance(terminal_tool, str) else set(terminal_tool)
        self.functions = {t.name: t.function for t in made}
        self.rules = Rules(
            tools=tuple(replace(t.spec, effect="terminal") if t.name in ends else t.spec for t in made),
            required=(required_steps,) if isinstance(required_steps, str) else tuple(required_steps),
            on_text=on_text,
            rescue=rescue_enabled,
            repair_limits=repair_limits or RepairLimits(),
            max_retries=max_retries_per_step,
            max_tool_errors=max_tool_errors,
        )
        wrong = (problem for t in made for problem in t.problems)
        if problems := (*wrong, *mistakes(self.rules, self.budget, ends)):
            raise DefinitionError(problems)

    def start(
        self, message: str, prompt_vars: Mapping[str, str] | None = None, initial_messages: History = ()
    ) -> State:
        """The state of a run of this workflow for that message, after an earlier conversation if there is one.

        Raises DefinitionError for a system prompt whose `{placeholder}` is not among `prompt_vars`.
        """
        turn = max(map(turn_of, initial_messages), default=0)
        ledger = Ledger(budget=self.budget, turn=turn, ids=last_id(initial_messages))
        asked = User(text=sound(message), turn=ledger.turn)
        if initial_messages:
            return State(history=(*initial_messages, asked), ledger=ledger)
        system = fill(self.system_prompt, prompt_vars or {})
        opening = (System(text=system),) if system else ()
        return State(history=(*opening, asked), ledger=ledger)

    def pipeline(self, connection: Connection) -> Stage:
        """The seven stages, set up for this workflow on that model."""
        rules, mode = self.rules, _mode(self.rules, connection)
        thinks = self._reasoning != "none"
        room = max(0, connection.context_tokens - connection.sampling.max_tokens)
        return pipeline(
            compact(self._compactor, ContextBudget(tokens=room, overhead=overhead(rules, mode), reasoning=thinks)),
            fold(self._reasoning, self._failed_attempts),
            serialize(rules, mode, connection.model, connection.sampling),
            send(rules),
            validate(rules, in_text=mode != "native", families=self._grammars(connection)),
            enforce(required_steps(rules), prerequisites(rules), *self._guards),
            execute(rules),
        )

    def _grammars(self, connection: Connection) -> tuple[Family, ...]:
        """The user's own, then the model's as its template has it, then all that are known: models mix them up."""
        derived = (template_family(connection.markers),) if connection.markers else ()
        return (*self._families, *derived, *FAMILIES)


def _mode(rules: Rules, connection: Connection) -> Mode:
    """The connection's mode. A constraint allows nothing but calls: where words are welcome, the prompt has to do."""
    if connection.mode == "constrained" and rules.on_text == "accept":
        logging.getLogger("forge").info("on_text='accept' leaves no room for a constraint; the mode is prompted")
        return "prompted"
    return connection.mode


def last_id(history: History) -> int:
    """The highest number among forge's own call ids, so that those of a further run are new."""
    calls = (call.id for message in history if isinstance(message, Assistant) for call in message.calls)
    return max((int(found[1]) for found in map(_CALL_ID.fullmatch, calls) if found), default=0)


_CALL_ID = re.compile(r"call_(\d{1,12})")
_PLACEHOLDER = re.compile(r"\{\{([A-Za-z_]\w*)\}\}|\{([A-Za-z_]\w*)\}")


def fill(template: str, values: Mapping[str, str]) -> str:
    """The template with each `{name}` replaced; `{{name}}` stands for `{name}`, any other brace for itself (B35)."""
    named = {match[2] for match in _PLACEHOLDER.finditer(template) if match[2]}
    if missing := sorted(named - values.keys()):
        raise DefinitionError(
            tuple(
                f"the system prompt has the placeholder {{{name}}}, and prompt_vars has no {name!r}; "
                f"pass it, or write {{{{{name}}}}} for literal braces"
                for name in missing
            )
        )
    return _PLACEHOLDER.sub(lambda match: values[match[2]] if match[2] else f"{{{match[1]}}}", template)


def mistakes(rules: Rules, budget: Budget, ends: set[str]) -> tuple[str, ...]:
    """Everything that is wrong with the rules of a workflow, a sentence each."""
    names = [spec.name for spec in rules.tools]
    known = ", ".join(names) or "none"
    found = [f"two tools are named {name}" for name in sorted({n for n in names if names.count(n) > 1})]
    found += [f"terminal_tool: there is no tool named {n!r}; the tools are: {known}" for n in sorted(ends - {*names})]
    found += [
        f"required_steps: there is no tool named {n!r}; the tools are: {known}"
        for n in rules.required
        if n not in names
    ]
    found += [
        f"{name} is terminal and a required step: it would have to be called before it may be called"
        for name in rules.required
        if name in rules.terminal
    ]
    if rules.on_text == "nudge" and not rules.terminal and not ends:
        found.append("there is no terminal_tool: nothing could end the run; name one, or set on_text='accept'")
    found += [sentence for spec in rules.tools for sentence in _prerequisite_mistakes(spec, rules)]
    if rules.on_text not in get_args(OnText):
        found.append(f"on_text is {rules.on_text!r}; it must be one of {', '.join(get_args(OnText))}")
    if budget.calls < 1:
        found.append(f"max_iterations is {budget.calls}; a run needs at least 1 model call")
    limits = {"max_retries_per_step": rules.max_retries, "max_tool_errors": rules.max_tool_errors}
    found += [f"{name} is {value}; it cannot be negative" for name, value in limits.items() if value < 0]
    return tuple(found)


def _prerequisite_mistakes(spec: ToolSpec, rules: Rules) -> list[str]:
    found = []
    for prerequisite in spec.prerequisites:
        needed = rules.tool(prerequisite.tool)
        if needed is None:
            found.append(f"tool {spec.name}: its prerequisite {prerequisite.tool!r} is not a tool of the workflow")
            continue
        if needed.effect == "terminal":
            found.append(f"tool {spec.name}: its prerequisite {needed.name} is terminal: the run would be over")
        if _depends(needed, spec.name, rules, frozenset()):
            found.append(f"tool {spec.name}: it needs {needed.name}, which needs {spec.name}: neither can be called")
        argument = prerequisite.match_arg
        lacking = [s.name for s in (spec, needed) if argument and argument not in _arguments(s)]
        found += [f"tool {spec.name}: match_arg {argument!r} is not an argument of {name}" for name in lacking]
    return found


def _depends(spec: ToolSpec, name: str, rules: Rules, seen: frozenset[str]) -> bool:
    """Whether the tool needs the one of that name, directly or through others."""
    if spec.name == name:
        return True
    if spec.name in seen:
        return False
    needed = (rules.tool(p.tool) for p in spec.prerequisites)
    return any(_depends(tool, name, rules, seen | {spec.name}) for tool in needed if tool is not None)


class _Properties(msgspec.Struct):
    properties: dict[str, msgspec.Raw] = {}


def _arguments(spec: ToolSpec) -> set[str]:
    return {*msgspec.json.decode(spec.parameters, type=_Properties).properties}
