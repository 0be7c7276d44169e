"""Setup: a Connection as data, so that a journal can say what a run was written for, and a replay rebuild it."""

from typing import Self

from msgspec import Struct

from forge.connection import Connection
from forge.errors import ForgeError
from stages.effect import Send, Undelivered
from stages.rescue.chat_template import Markers
from stages.serialize import Mode
from stages.wire.prompted.forms import JSON, XML
from stages.wire.sampling import Sampling
from stages.wire.wires import OPENAI, Dialect, wire

FORMS = {form.name: form for form in (JSON, XML)}


class Setup(Struct, frozen=True, kw_only=True):
    """What a pipeline is set up for: the model, mode, dialect, form. No address, no key."""

    mode: Mode = "native"
    model: str = ""
    context_tokens: int = 0
    sampling: Sampling = Sampling()
    dialect: Dialect = OPENAI.dialect
    form: str = "json"
    alternating: bool = False
    falls_back: bool = False
    markers: Markers | None = None

    @classmethod
    def of(cls, connection: Connection) -> Self:
        """The description of that connection."""
        return cls(
            mode=connection.mode,
            model=connection.model,
            context_tokens=connection.context_tokens,
            sampling=connection.sampling,
            dialect=connection.wire.dialect,
            form=connection.form.name,
            alternating=connection.alternating,
            falls_back=connection.falls_back,
            markers=connection.markers,
        )

    def connection(self) -> Connection:
        """A connection of that description that nothing can be sent over. ForgeError for an unknown form."""
        if self.form not in FORMS:
            raise ForgeError(f"there is no form {self.form!r} of calls in text; there are: {', '.join(FORMS)}")
        return Connection(
            send=_nobody,
            mode=self.mode,
            model=self.model,
            context_tokens=self.context_tokens,
            sampling=self.sampling,
            wire=wire(self.dialect),
            form=FORMS[self.form],
            alternating=self.alternating,
            falls_back=self.falls_back,
            markers=self.markers,
        )


async def _nobody(effect: Send) -> Undelivered:
    raise ForgeError(f"a journal is replayed offline: the model call of turn {effect.turn} cannot be sent")
