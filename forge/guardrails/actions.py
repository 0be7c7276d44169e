"""Actions: what a foreign loop has to do next, as values, and what it has to tell the model."""

from typing import Literal

import msgspec
from msgspec import Struct

from forge.outcome import Finished, Halted
from stages.message import History, Kind
from stages.wire import valid
from stages.wire.anthropic import messages as anthropic
from stages.wire.openai import chat as openai


class Call(Struct, frozen=True, kw_only=True):
    """A call that may run. `id` is the server's own where it gave one; `text` are the arguments as JSON text."""

    id: str
    name: str
    text: str

    @property
    def arguments(self) -> dict[str, object]:
        """The arguments, checked against the tool's schema: `function(**call.arguments)`."""
        return msgspec.json.decode(self.text, type=dict[str, object])


class RunCalls(Struct, frozen=True, kw_only=True):
    """Run `calls`, at the same time if you like, and `record` what came of them.

    `rest` are the calls of the same reply that come after them: the next action asks for them, or says that they are
    not to be run. A loop that runs a whole reply at once runs both, in this order, and records both.
    """

    calls: tuple[Call, ...]
    rest: tuple[Call, ...] = ()


class AskPerson(Struct, frozen=True, kw_only=True):
    """A tool wants a person's yes: ask, then `approve` or `reject`.

    `problem`: what is wrong with the arguments that it was approved with a moment ago; to give such again is a no.
    """

    call: Call
    problem: str = ""


class Nudge(Struct, frozen=True, kw_only=True):
    """A corrective message for the model. Seed: `Nudge`.

    `role` is `tool` for the answer to the call `call_id` of `tool`, `user` where there was no call. `tier` is how
    often that kind of mistake was made in a row.
    """

    role: Literal["user", "tool"]
    content: str
    kind: Kind
    tier: int = 0
    call_id: str = ""
    tool: str = ""


class CallModel(Struct, frozen=True, kw_only=True):
    """Call the model again, after these messages: its last reply, and the answers to it.

    `nudges` are those among the answers that correct it; empty where all went well.
    """

    added: History
    nudges: tuple[Nudge, ...] = ()

    def openai(self) -> list[dict[str, object]]:
        """`added` as messages of the OpenAI chat completions protocol, to append to those of your request."""
        return plain(openai.encode_history(valid.valid_history(self.added)))

    def anthropic(self) -> list[dict[str, object]]:
        """`added` as messages of Anthropic's Messages API, to append to those of your request."""
        return plain(anthropic.encode_history(self.added))


def plain(encoded: object) -> list[dict[str, object]]:
    """What is ready for a wire as dicts and lists, as client libraries take it."""
    return msgspec.json.decode(msgspec.json.encode(encoded), type=list[dict[str, object]])


Action = RunCalls | AskPerson | CallModel | Finished | Halted
"""What to do next. `Finished`: the task is done, `value` is the answer. `Halted`: it is over, and `halt` says why."""
