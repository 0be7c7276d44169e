"""Setup: a Connection as data, so that a journal can say what a run was written for, and a replay rebuild it."""

from typing import Self

from msgspec import Struct
from msgspec.structs import replace

from forge.connection import Connection
from forge.errors import ForgeError
from stages.effect import Send, Undelivered
from stages.rescue.template import Markers
from stages.serialize import Mode
from stages.wire import ollama
from stages.wire.openai import Sampling
from stages.wire.prompted import JSON, XML
from stages.wire.wires import WIRES, Wire

FORMS = {form.name: form for form in (JSON, XML)}


class Setup(Struct, frozen=True, kw_only=True):
    """What a pipeline is set up for: the model, the mode, the wire and form by their names. No address, no key."""

    mode: Mode = "native"
    model: str = ""
    context_tokens: int = 0
    sampling: Sampling = Sampling()
    wire: str = "openai"
    form: str = "json"
    alternating: bool = False
    markers: Markers | None = None

    @classmethod
    def of(cls, connection: Connection) -> Self:
        """The description of that connection."""
        return cls(
            mode=connection.mode,
            model=connection.model,
            context_tokens=connection.context_tokens,
            sampling=connection.sampling,
            wire=connection.wire.name,
            form=connection.form.name,
            alternating=connection.alternating,
            markers=connection.markers,
        )

    def connection(self) -> Connection:
        """A connection of that description that nothing can be sent over. ForgeError for an unknown wire or form."""
        if self.wire not in WIRES:
            raise ForgeError(f"there is no wire {self.wire!r}; there are: {', '.join(WIRES)}")
        if self.form not in FORMS:
            raise ForgeError(f"there is no form {self.form!r} of calls in text; there are: {', '.join(FORMS)}")
        return Connection(
            send=_nobody,
            mode=self.mode,
            model=self.model,
            context_tokens=self.context_tokens,
            sampling=self.sampling,
            wire=_wire(self.wire, self.context_tokens),
            form=FORMS[self.form],
            alternating=self.alternating,
            markers=self.markers,
        )


async def _nobody(effect: Send) -> Undelivered:
    raise ForgeError(f"a journal is replayed offline: the model call of turn {effect.turn} cannot be sent")


def _wire(name: str, context_tokens: int) -> Wire:
    if name != "ollama":
        return WIRES[name]
    own = ollama.Options(num_ctx=context_tokens)
    return replace(WIRES[name], head=lambda model, sampling, _: ollama.head(model, sampling, own))
