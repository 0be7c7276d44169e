"""What the commands of a chat answer, as rows. Pure."""

from collections.abc import Collection, Iterator

from forge.agent import Agent
from forge.agent.built_in import NAMES
from forge.cli.chat.screen import Printed, Spelled
from forge.cli.chat.slash import HELP
from forge.cli.layout import LabelledText
from forge.cli.plain import printable, readable
from forge.errors import quantity
from stages.effect import Ask, Execute
from stages.message import Assistant, Kind, User
from stages.state import Awaiting, Done, State
from stages.tool import ToolSpec

_KEYS = {
    "Enter": "say it; while the agent works, it reads it with the next results",
    "Alt-Enter": "a new line",
    "Ctrl-C": "cancel what the agent does; twice at an empty line: end",
    "Ctrl-D": "end",
    "Up, Ctrl-R": "what you said before, search it",
}


def help_rows(*, keys: bool) -> Iterator[LabelledText]:
    """The commands, and the keys where there are any."""
    for name, one in HELP.items():
        yield LabelledText("", f"{f'/{name} {one.argument}'.rstrip():<16} {one.does}")
    for key, does in _KEYS.items() if keys else ():
        yield LabelledText("", f"{key:<16} {does}")


def opened_rows(agent: Agent, told: tuple[str, ...]) -> Iterator[LabelledText]:
    """What a chat begins with: the model, the tools, what the agent was given to read."""
    yield from model_rows(agent)
    names = ", ".join(one.name for one in _own(agent.workflow.rules.tools))
    yield LabelledText("tools", printable(names) or "none")
    for sentence in told:
        yield LabelledText("read", printable(sentence))
    yield LabelledText("", "/help lists the commands; Ctrl-C cancels, Ctrl-D ends")


def model_rows(agent: Agent) -> Iterator[LabelledText]:
    """The model, as far as it is known."""
    setup = agent.setup
    if setup is None:
        yield LabelledText("model", "not connected")
        return
    room = f", {setup.context_tokens:,} tokens of context" if setup.context_tokens else ""
    how = f"tool calls {setup.mode}" if agent.workflow.rules.tools else "no tools"
    facts = f"{printable(setup.model) or 'the one of the server'} ({how}{room})"
    yield LabelledText("model", facts)


def status_facts(agent: Agent, name: str) -> Iterator[str]:
    """The model, how full its context is, and the name of the conversation."""
    if agent.setup is not None and agent.setup.model:
        yield printable(agent.setup.model, 40)
    use = agent.prompt_use
    if use is not None and use.limit:
        yield f"context {use.used * 100 // use.limit} %"
    yield printable(name, 40)


def tool_rows(tools: Collection[ToolSpec], always: Collection[str]) -> Iterator[LabelledText]:
    """Each tool: what it does, and whether a person is asked."""
    if not _own(tools):
        yield LabelledText("tools", "none; this agent just talks")
    for one in _own(tools):
        asks = ", allowed in this session" if one.name in always else ", asks first" if one.approval else ""
        first = one.description.strip().split("\n")[0]
        yield LabelledText(one.effect, f"{printable(one.name)}{asks}: {printable(first)}")


def _own(tools: Collection[ToolSpec]) -> tuple[ToolSpec, ...]:
    return tuple(one for one in tools if one.name not in NAMES)


def context_rows(agent: Agent) -> Iterator[LabelledText]:
    """What the next prompt takes, and the parts of the system prompt, in tokens."""
    use = agent.prompt_use
    if use is not None:
        of = f" of {use.limit:,} tokens ({use.used * 100 // use.limit} %)" if use.limit else " tokens"
        yield LabelledText("prompt", f"about {use.used:,}{of}")
        yield LabelledText("", f"{use.system:,} system prompt, {use.tools:,} tools, {use.messages:,} conversation")
    else:
        yield LabelledText("prompt", "known after your next message")
    for section in agent.sections:
        yield LabelledText("", f"{section.tokens:,} of the system prompt are its {section.name}")


def resumed_rows(name: str, state: State | None) -> Iterator[Printed]:
    """Where the conversation stands: its name, what was said last, and the answer."""
    history = state.history if state is not None else ()
    said = [one for one in history if isinstance(one, User) and one.kind is Kind.USER_INPUT]
    yield LabelledText("goes on", f"{printable(name)}, after {quantity(len(said), 'message')} of yours", "", "cyan")
    if said:
        yield LabelledText("you", printable(said[-1].text), "bold")
    if history and isinstance(history[-1], Assistant) and history[-1].text.strip():
        yield Spelled(readable(history[-1].text))
    if state is not None and (unfinished := _unfinished(state)):
        yield LabelledText("cut off", f"{unfinished}; /continue goes on with it, or say something else", "", "yellow")


def _unfinished(state: State) -> str:
    """What is left of the last message's work; empty: nothing."""
    match state.phase:
        case Done():
            return ""
        case Awaiting(effect=Ask(call=call)):
            return f"{printable(call.name)} waits for your approval"
        case Awaiting(effect=Execute(calls=calls)):
            return f"{printable(', '.join(call.name for call in calls))} may have been under way"
        case _:
            return "your last message was not answered"
