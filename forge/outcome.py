"""How a run ended: `Finished` or `Halted`, both with its last state."""

from typing import Generic

import msgspec
from msgspec import Struct
from typing_extensions import TypeVar

from forge.errors import ForgeError, explain
from stages.halt import Halt
from stages.state import Completed, Ending, Said, State

_SHOWN = 200
"""Characters of a value that a repr shows."""

R_co = TypeVar("R_co", default=object, covariant=True)
"""The type of a run's value: the workflow's `result`, object where it has none."""


class Finished(Struct, Generic[R_co], frozen=True, kw_only=True):
    """A run that reached a typed outcome, and its last state.

    `result` is the value as an instance of the workflow's result type, where it has one.
    """

    outcome: Ending
    state: State
    result: R_co | None = None

    @property
    def value(self) -> R_co:
        """The result; else what the terminal tool returned, as JSON has it; the text, where the model answered in text.

        The outcome itself where it is a question or a hand-over. Only a run that ended by its result has one of the
        workflow's type: where a run may end otherwise, look at `outcome` first.
        """
        return _value(self)  # type: ignore[return-value]  # see above

    def __repr__(self) -> str:
        """The value, cut to size, and the state in a few words."""
        return f"Finished({type(self.outcome).__name__}, value={short_repr(_value(self))}, {self.state!r})"


def _value(finished: Finished) -> object:
    match finished.outcome:
        case Completed(value=value):
            return msgspec.json.decode(value) if finished.result is None else finished.result
        case Said(text=text):
            return text
        case other:
            return other


class Halted(ForgeError):  # noqa: N818 - nobody raises it
    """A run that ended without its goal: why, and its last state, from which it can be resumed.

    It is the failure of a Result, and raised by nobody. As an exception it is the cause of what `unwrap` raises, so
    that the traceback says why the run ended; `str` of it is that sentence.
    """

    __match_args__ = ("halt", "state")
    state: State

    def __init__(self, *, halt: Halt, state: State) -> None:
        super().__init__(explain(halt), state)
        self.halt = halt

    def __eq__(self, other: object) -> bool:
        """Whether the other ended in the same state for the same reason."""
        return isinstance(other, Halted) and (self.halt, self.state) == (other.halt, other.state)

    def __hash__(self) -> int:
        """The same for equal ones; the rest of a state has no hash."""
        return hash((type(self.halt), self.state.run))

    def __reduce__(self) -> tuple[object, ...]:
        """Copied and pickled by its fields."""
        return (_halted, (self.halt, self.state))

    def __repr__(self) -> str:
        """The reason in a sentence, cut to size, and the state in a few words."""
        return f"Halted({type(self.halt).__name__}: {short_repr(str(self), quoted=False)}, {self.state!r})"


def _halted(halt: Halt, state: State) -> Halted:
    return Halted(halt=halt, state=state)


def short_repr(value: object, *, quoted: bool = True, most: int = _SHOWN) -> str:
    """The value as Python writes it, or as it is where it is a text and not `quoted`, cut to size."""
    plain = value if isinstance(value, str) else repr(value)
    short = plain if len(plain) <= most else f"{plain[:most]}…"
    return repr(short) if quoted and isinstance(value, str) else short
