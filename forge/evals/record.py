"""The record of a run in progress: what it did and used so far, kept however it ends."""

import hashlib
from collections.abc import AsyncGenerator, Awaitable, Generator
from dataclasses import dataclass, field, replace
from functools import partial, wraps
from typing import Any

import msgspec
from msgspec import Raw, structs

from forge.connection import Connection
from forge.evals.scenario import PerformedCall, Trajectory
from forge.interpreters.threads import unheard
from forge.interpreters.tools import invoked, returns_awaitable
from forge.tools.definition import Explicit, IdempotencyKey, Tool, tool
from forge.workflow.workflow import Workflow
from stages import events
from stages.effect import Failed, Fault, Price, Replied, Send, Undelivered, Usage
from stages.message import Assistant, Kind
from stages.state import Ending
from stages.wire.wires import Dialect

_UNENDED = "it had not returned when the run ended"


@dataclass
class RunRecord:
    """A run so far. `message`: number of the current user message; `fault`: of the last request."""

    calls: list[PerformedCall] = field(default_factory=list)
    outcomes: list[Ending] = field(default_factory=list)
    message: int = 0
    asked: int = 0
    retries: int = 0
    step_nudges: int = 0
    tool_errors: int = 0
    rescued: int = 0
    compactions: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    cost: float = 0.0
    started: float = 0.0
    seconds: float = 0.0
    fault: Fault | None = None
    _conversation: hashlib.blake2b = field(default_factory=partial(hashlib.blake2b, digest_size=16))

    @property
    def digest(self) -> str:
        """A hash of everything that was sent to the model and answered."""
        return self._conversation.hexdigest() if self.asked else ""

    def said(self, words: bytes) -> None:
        """Add a request or a reply to the digest."""
        self._conversation.update(words)

    def trajectory(self, messages: int) -> Trajectory:
        """The result of a run that had to answer `messages` messages."""
        whole = len(self.outcomes) == messages
        last = self.outcomes[-1] if whole else None
        return Trajectory(outcome=last, calls=tuple(self.calls), outcomes=tuple(self.outcomes))

    def spend(self, usage: Usage | None, price: Price) -> None:
        """Add a reply's usage, as counted by the server."""
        if usage is not None:
            self.input_tokens += usage.prompt
            self.output_tokens += usage.completion
            self.cached_tokens += usage.cached
            self.cost += price.of(usage)

    def observe(self, stamped: events.Stamped) -> None:
        """Count events of forge's loop."""
        match stamped.event:
            case events.Nudged(kind=Kind.RETRY_NUDGE | Kind.PROVENANCE_NUDGE):
                self.retries += 1
            case events.Nudged(kind=Kind.STEP_NUDGE | Kind.PREREQUISITE_NUDGE):
                self.step_nudges += 1
            case events.ToolsReturned(results=results):
                self.tool_errors += sum(isinstance(result, Failed) for result in results)
            case events.MessageAdded(message=Assistant(calls=calls)):
                self.rescued += sum(call.origin not in {"native", "prompted"} or bool(call.repairs) for call in calls)
            case events.HistoryCompacted():
                self.compactions += 1
            case _:
                pass

    def recorded(self, workflow: Workflow[Any]) -> Workflow[Any]:
        """The workflow with tools that record their calls here."""
        tools = [made if isinstance(made, Tool) else tool(made) for made in workflow.tools]
        return replace(workflow, tools=[self._recorded(made) for made in tools])

    def _recorded(self, made: Tool[..., object]) -> Tool[..., object]:
        own = made.function
        inner = partial(own.func, *own.args, **own.keywords) if isinstance(own, Explicit) else own
        is_async = returns_awaitable(inner)

        @wraps(inner)
        async def run(**arguments: object) -> object:
            given = {key: value for key, value in arguments.items() if not isinstance(value, IdempotencyKey)}
            call = PerformedCall(tool=made.name, arguments=given, error=_UNENDED, message=self.message)
            at = len(self.calls)
            self.calls.append(call)  # in the order of their start

            def returned(result: object) -> None:
                self.calls[at] = structs.replace(call, result=result, error="")

            def in_its_thread(**values: object) -> object:
                # A function that overruns its time-out is abandoned, not stopped: it takes effect all the same.
                # So does a generator up to its next value, which is not recorded.
                value = inner(**values)
                if not isinstance(value, Generator | AsyncGenerator | Awaitable):
                    returned(value)
                return value

            try:
                result = await invoked(inner if is_async else in_its_thread, arguments, unheard, is_async=is_async)
            except Exception as error:
                self.calls[at] = structs.replace(call, error=str(error) or type(error).__name__)
                raise
            returned(result)
            return result

        watched = Explicit(run, own.signature, own.convert) if isinstance(own, Explicit) else run
        return Tool(watched, made.spec, made.problems)


# The connection of a run: counts model calls, gives each a sampling seed, and limits the context.

_SEEDS_PER_RUN = 1000
"""Maximum model calls per run for the seeds of two runs not to overlap."""


def request_seed(run: int, number: int) -> int:
    """The sampling seed of a run's n-th model call: the same for every player, and for no two calls."""
    return run * _SEEDS_PER_RUN + number


def metered(connection: Connection, record: RunRecord, *, seed: int, price: Price, context_tokens: int) -> Connection:
    """The connection of one run; usage is added to the record.

    A prompt of more than `context_tokens` is refused, as by a server with that context.
    """
    known = connection.setup

    async def send(effect: Send) -> Replied | Undelivered:
        record.asked += 1
        record.said(effect.request.body)
        setup = known.targets.get(effect.target, known)
        outcome = await connection.send(seeded(effect, setup.dialect, request_seed(seed, record.asked)))
        if isinstance(outcome, Replied):
            usage, record.fault = outcome.reply.usage, None
            record.said(msgspec.json.encode(outcome.reply))
            record.spend(usage, price)
            if usage is not None and usage.prompt > context_tokens:
                said = f"the prompt has {usage.prompt} tokens, and the context of this scenario {context_tokens}"
                return Undelivered(fault=Fault(kind="status", status=400, detail=said), seconds=outcome.seconds)
        else:
            record.fault = outcome.fault
        return outcome

    return structs.replace(
        connection, setup=structs.replace(known, context_tokens=context_tokens), send=send, stream=None
    )


def seeded(effect: Send, dialect: Dialect, seed: int) -> Send:
    """The request with that sampling seed, if its wire has a field for it."""
    head = msgspec.json.decode(effect.request.head, type=dict[str, Raw])
    number = Raw(str(seed).encode())
    match dialect.wire:
        case "openai" if name := dialect.option_names.get("seed", "seed"):
            head[name] = number
        case "ollama":
            options = msgspec.json.decode(head.get("options", Raw(b"{}")), type=dict[str, Raw])
            head["options"] = Raw(msgspec.json.encode({**options, "seed": number}))
        case _:
            return effect
    return structs.replace(effect, request=structs.replace(effect.request, head=Raw(msgspec.json.encode(head))))
