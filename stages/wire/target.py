"""Target: a model that a request may be for, and how requests for it are written and its replies are read."""

from typing import Literal

from stages.options import Options
from stages.rescue.found import Family
from stages.rescue.markers import Openers
from stages.wire.deltas import Sampling
from stages.wire.prompted import JSON, Form
from stages.wire.tool_schemas import ToolSchemas
from stages.wire.wires import OPENAI, Wire

Mode = Literal["native", "prompted", "constrained"]
"""Tools in the request's own field; tools in the prompt; that, and a schema of the calls that are legal now."""


class Target(Options, frozen=True, kw_only=True):
    """A model under the name by which stages ask for it (`Ready.target`): `main` is the run's own.

    `form` is how calls are written as text, where they are. `alternating`: the model's template wants roles to take
    turns, so neighbours are joined; as text they always are. `schemas` are the tools', where they are compiled already.
    `falls_back`: once the server has refused tools (`Ledger.fallback`), they are written into the prompt. `families`
    are the grammars in which calls are looked for in its replies, compiled (`Openers`) or not; None: all that forge
    knows; empty: none, as if rescue were off.
    """

    mode: Mode = "native"
    model: str = ""
    sampling: Sampling = Sampling()
    wire: Wire = OPENAI
    form: Form = JSON
    alternating: bool = False
    schemas: ToolSchemas | None = None
    falls_back: bool = False
    families: tuple[Family, ...] | Openers | None = None

    @property
    def modes(self) -> frozenset[Mode]:
        """Every mode in which the model may be asked in a run."""
        return frozenset((self.mode, "prompted")) if self.falls_back else frozenset((self.mode,))
