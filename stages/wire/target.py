"""Target: a model, how requests for it are written and how its replies are read."""

from typing import Literal

from stages.options import Options
from stages.rescue.found import Family
from stages.rescue.markers import Grammars
from stages.wire.prompted import JSON, Form
from stages.wire.sampling import Sampling
from stages.wire.tool_schemas import ToolSchemas
from stages.wire.wires import OPENAI, Wire

Mode = Literal["native", "prompted", "constrained"]
"""Tools in the request's field; tools in the prompt; tools in the prompt and a schema of the legal calls."""


class Target(Options, frozen=True, kw_only=True):
    """A model that stages request by its name (`Ready.target`); `main` is the run's own.

    `form` is the format of calls written as text. `alternating`: the model's template requires alternating roles, so
    adjacent messages of one role are joined, as they always are in text. `schemas` are those of the tools, if they are
    compiled already. `falls_back`: once the server has refused tools (`Ledger.fallback`), they are written into the
    prompt. `families` are the formats in which replies are searched for calls, or compiles them; None: all known
    ones; empty: none, as if rescue were off.
    """

    mode: Mode = "native"
    model: str = ""
    sampling: Sampling = Sampling()
    wire: Wire = OPENAI
    form: Form = JSON
    alternating: bool = False
    schemas: ToolSchemas | None = None
    falls_back: bool = False
    families: tuple[Family, ...] | Grammars | None = None

    @property
    def modes(self) -> frozenset[Mode]:
        """Every mode that a run may use for the model."""
        return frozenset((self.mode, "prompted")) if self.falls_back else frozenset((self.mode,))
