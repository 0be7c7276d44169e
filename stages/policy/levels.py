"""Levels of escalation: what a workflow offers a model that makes no progress."""

from typing import Literal, get_args

from msgspec import Struct

TextMode = Literal["constrained", "prompted"]
"""The modes that an escalation may change to."""

_MODES: tuple[TextMode, ...] = get_args(TextMode)

EscalationLevel = Literal["open", "narrow", "pin", "call", "simple", "constrained", "prompted"]
"""What the next reply is offered.

- `open`: every legal tool.
- `narrow`: pending steps that the model is not stuck on; without any, other ways on.
- `pin`: the pending steps; with none pending, what ends the run.
- `call`: as `narrow`, and the request demands a call (`tool_choice`). Mode native only.
- `simple`: as `pin`; tools that read are offered without their optional arguments. Mode constrained only.
- `constrained`, `prompted`: every legal tool; calls are asked for in that mode for the rest of the run.

A level that the backend does not support is skipped.
"""


class Escalation(Struct, frozen=True, kw_only=True):
    """How the offer changes: one level further with each reply in a row that brought nothing new, then from the start.

    Without levels, every reply may be any legal call. `stages.policy.escalation` applies it.

    `look_first`: while the run makes progress, no tool that writes is offered before the required steps that only
    read, unless something required needs it; without required steps, none that nobody has spoken of. So a model that a
    constraint forces to call a tool is not tempted.
    `writes`: tools that write and that a model without progress is offered on the level `narrow`, too, although no step
    needs them: where the work is to change something, and to look once more is no help.
    `end_in_time`: the last of several model calls that the budget has is offered nothing but the tools that end the
    run, if one is legal: what any other would find out, no model call could use any more.
    """

    levels: tuple[EscalationLevel, ...] = ("narrow", "pin", "open")
    look_first: bool = True
    writes: tuple[str, ...] = ()
    end_in_time: bool = True

    @property
    def modes(self) -> tuple[TextMode, ...]:
        """The modes that it may change to, in their order."""
        return tuple(mode for level in self.levels for mode in _MODES if mode == level)
