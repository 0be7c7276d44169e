"""How a chat displays an agent's events, as data."""

from collections.abc import Collection, Iterator

from msgspec import Struct
from msgspec.structs import replace

from forge.agent import Agent
from forge.agent.definition import NAMES
from forge.cli.chat.slash import HELP
from forge.cli.console import LINE, LabelledText, printable, readable
from forge.cli.rows import result_row, rows, run_row, shortened
from forge.cli.status import Screen, after
from forge.errors import quantity
from stages import events
from stages.effect import Ask, CallResult, Execute, NeedsInput
from stages.events import Stamped
from stages.halt import ApprovalNeeded, Cancelled
from stages.message import Assistant, Kind, User
from stages.state import Awaiting, Completed, Done, State
from stages.tool import ToolSpec
from stages.wire.deltas import Delta

# Excerpts of results. Pure.

_LINES, _LINE = 4, 160
"""Maximum lines of a result to show, and characters of each."""


def excerpt(text: str) -> str:
    """The first lines of a tool's result, shortened, and how many follow."""
    lines = text.strip().splitlines() or ["(nothing)"]
    shown: list[str] = []
    for line in lines[:_LINES]:
        cut = f"… ({len(line) - _LINE} more)" if len(line) > _LINE else ""
        shown.append(readable(line[:_LINE].expandtabs(4)) + cut)
    more = len(lines) - _LINES
    return "\n".join((*shown, f"… {quantity(more, 'more line')}") if more > 0 else shown)


def _unmarked(text: str) -> str:
    """An error without the bracketed word that tells a model its kind."""
    marked = text.startswith("[") and text.partition("] ")[0][1:].isalpha()
    return text.partition("] ")[2] if marked else text


# What is printed permanently: the rows of a run, and what a chat adds. Pure.


class Spelled(Struct, frozen=True):
    """The agent's Markdown answer, with suggested replies."""

    markdown: str
    suggestions: tuple[str, ...] = ()


Printed = LabelledText | Spelled
"""Printed permanently: a labelled row, or the agent's answer."""


def followed_by(screen: Screen, stamped: Stamped) -> tuple[Screen, tuple[Printed, ...]]:
    """The screen after the event, and what to print."""
    if stamped.parent:
        # For an agent called as a tool, the tool's result shows the answer, or why there is none.
        if isinstance(stamped.event, events.RunHalted | events.RunFailed):
            return screen, ()
        rows = (one for one in _printed(Screen(), stamped) if isinstance(one, LabelledText))
        return screen, tuple(replace(one, text=f"{printable(stamped.agent)}: {one.text}") for one in rows)
    return after(screen, stamped), tuple(_printed(screen, stamped))


_SHOWN = {
    "approval": LINE,
    "corrected": 140,
    "done": LINE,
    "halted": LINE,
    "heard": LINE,
    "retry": LINE,
    "runs": LINE,
    "shortened": LINE,
    "warning": LINE,
}
"""The rows of a run that a chat shows, with the maximum characters of each; it has its own rows for other labels."""

_FOR_THE_MODEL = ("corrected", "warning")
"""Rows whose text addresses the model as "you", which a person would take for themselves."""

_FOLDED = 60
"""Maximum characters to show of reasoning."""


def _printed(screen: Screen, stamped: Stamped) -> Iterator[Printed]:
    event = stamped.event
    match event:
        case events.ModelReplied(summary=False, thought=thought) if thought:
            words = quantity(len(thought.split()), "word")
            yield run_row("thought", f"{words}: {printable(thought, _FOLDED)}")
        case events.CallsAccepted(calls=calls, text=text):
            if text.strip() and screen.remarked != stamped.turn:
                yield run_row("said", printable(text.strip()))
            known = {one.call_id: one.arguments for one in screen.running}
            for call in calls:
                if call.id in screen.approved:
                    changed = "" if known.get(call.id) == call.arguments else f" with {call.arguments}"
                    yield LabelledText("allowed", printable(f"by you{changed}"), label_style="green")
            # Calls that needed approval were shown with the question, and built-in tools answer the user.
            new = tuple(call for call in calls if call.id not in known and call.name not in NAMES)
            yield from _of_a_run(replace(event, calls=new))
        case events.ToolsReturned(results=results):
            yield from _returned(screen, results)
        case events.RunFinished(text=text, outcome=outcome) if text:
            suggestions = outcome.suggestions if isinstance(outcome, NeedsInput) else ()
            yield Spelled(readable(text), tuple(printable(one) for one in suggestions))
        case events.RunFinished(outcome=Completed()):
            pass  # the tool returned None
        case events.RunHalted(halt=halt):
            for one in screen.running:  # calls that were waiting for approval
                of = f"{printable(one.name)}: " if len(screen.running) > 1 else ""
                yield LabelledText("result", f"{of}It was not run.", "dim", "yellow")
            match halt:
                case Cancelled():
                    yield LabelledText("cancelled", "send another message, or /continue", label_style="yellow")
                case ApprovalNeeded(tool=tool):
                    told = f"{tool} needs a person's approval, and nobody is there to ask"
                    yield shortened(run_row("halted", told))
                case _:
                    yield from _of_a_run(event)
                    yield LabelledText("", "/continue tries again")
        case events.RunFailed(problem=problem):
            yield shortened(run_row("halted", problem))
        case _:
            yield from _of_a_run(event)


def _of_a_run(event: events.Event | Delta) -> Iterator[LabelledText]:
    """The rows that `forge run` would print, without those that a chat does not show."""
    for row in rows(event):
        if row.label in _SHOWN:
            text = f"the model was told: {_unmarked(row.text)}" if row.label in _FOR_THE_MODEL else row.text
            yield shortened(replace(row, text=text), _SHOWN[row.label])


def _returned(screen: Screen, results: tuple[CallResult, ...]) -> Iterator[LabelledText]:
    names = {one.call_id: one.name for one in screen.running}
    for result in results:
        name, row = names.get(result.call_id, ""), result_row(result)
        if not name or (name in NAMES and row.label == "result"):
            continue  # a refused call is shown by its correction
        of = f"{printable(name)}: " if len(screen.running) > 1 else ""
        said = excerpt(row.text if row.label == "result" else _unmarked(row.text))
        yield replace(row, text=of + said, style="dim")


# Answers to commands, as rows. Pure.

_KEYS = {
    "Enter": "send; the agent reads a message sent while it works with the next tool results",
    "Alt-Enter": "insert a newline",
    "Ctrl-C": "cancel the current work; twice on an empty line: exit",
    "Ctrl-D": "exit",
    "Up, Ctrl-R": "search the input history",
}


def help_rows(*, keys: bool) -> Iterator[LabelledText]:
    """The commands, and the keys if there are any."""
    for name, (argument, does) in HELP.items():
        yield LabelledText("", f"{f'/{name} {argument}'.rstrip():<16} {does}")
    for key, does in _KEYS.items() if keys else ():
        yield LabelledText("", f"{key:<16} {does}")


def opened_rows(agent: Agent, told: str) -> Iterator[LabelledText]:
    """The start of a chat: the model, the tools, and the file given to the agent."""
    yield from model_rows(agent)
    names = ", ".join(one.name for one in _own(agent.workflow.rules.tools))
    yield LabelledText("tools", printable(names) or "none")
    if told:
        yield LabelledText("read", printable(told))
    yield LabelledText("", "/help lists the commands; Ctrl-C cancels, Ctrl-D exits")


def model_rows(agent: Agent) -> Iterator[LabelledText]:
    """What is known of the model."""
    setup = agent.setup
    assert setup is not None, "a chat's agent is connected"  # noqa: S101
    room = f", {setup.context_tokens:,} tokens of context" if setup.context_tokens else ""
    how = f"tool calls {setup.mode}" if agent.workflow.rules.tools else "no tools"
    facts = f"{printable(setup.model) or 'chosen by the server'} ({how}{room})"
    yield LabelledText("model", facts)


def status_facts(agent: Agent, name: str) -> Iterator[str]:
    """The model, its context use, and the name of the conversation."""
    if agent.setup is not None and agent.setup.model:
        yield printable(agent.setup.model, 40)
    use = agent.prompt_use
    if use is not None and use.limit:
        yield f"context {use.used * 100 // use.limit} %"
    yield printable(name, 40)


def tool_rows(tools: Collection[ToolSpec], always: Collection[str]) -> Iterator[LabelledText]:
    """Each tool: its description, and whether it needs approval."""
    if not _own(tools):
        yield LabelledText("tools", "none; this agent can only talk")
    for one in _own(tools):
        asks = ", allowed in this session" if one.name in always else ", asks first" if one.approval else ""
        first = one.description.strip().split("\n")[0]
        yield LabelledText(one.effect, f"{printable(one.name)}{asks}: {printable(first)}")


def _own(tools: Collection[ToolSpec]) -> tuple[ToolSpec, ...]:
    return tuple(one for one in tools if one.name not in NAMES)


def context_rows(agent: Agent) -> Iterator[LabelledText]:
    """The size of the next prompt and of the system prompt's sections, in tokens."""
    use = agent.prompt_use
    if use is not None:
        of = f" of {use.limit:,} tokens ({use.used * 100 // use.limit} %)" if use.limit else " tokens"
        yield LabelledText("prompt", f"about {use.used:,}{of}")
        # The sections are estimates made before the model is known: only their shares are right.
        rate = use.system / max(1, sum(section.tokens for section in agent.sections))
        parts = ", ".join(f"{section.name} {section.tokens * rate:,.0f}" for section in agent.sections)
        yield LabelledText("", f"{use.system:,} system prompt{f' ({parts})' if parts else ''}")
        yield LabelledText("", f"{use.tools:,} tools and the chat template's own text")
        yield LabelledText("", f"{use.messages:,} conversation")
    else:
        yield LabelledText("prompt", "known after your next message")


def resumed_rows(name: str, state: State | None) -> Iterator[Printed]:
    """The state of the conversation: its name, the last message, and the answer."""
    history = state.history if state is not None else ()
    said = [one for one in history if isinstance(one, User) and one.kind is Kind.USER_INPUT]
    yield LabelledText("goes on", f"{printable(name)}, after {quantity(len(said), 'message')} of yours", "", "cyan")
    if said:
        yield LabelledText("you", printable(said[-1].text), "bold")
    if history and isinstance(history[-1], Assistant) and history[-1].text.strip():
        yield Spelled(readable(history[-1].text))
    if state is None or isinstance(state.phase, Done):
        return
    match state.phase:
        case Awaiting(effect=Ask(call=call)):
            unfinished = f"{printable(call.name)} waits for your approval"
        case Awaiting(effect=Execute(calls=calls)):
            unfinished = f"{printable(', '.join(call.name for call in calls))} may have been running"
        case _:
            unfinished = "your last message was not answered"
    yield LabelledText("cut off", f"{unfinished}; /continue resumes it, or send another message", "", "yellow")
