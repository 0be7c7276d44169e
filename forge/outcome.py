"""The end of a run: `Finished` or `Halted`, both with the last state."""

from typing import Generic

import msgspec
from msgspec import Struct
from typing_extensions import TypeVar

from forge.errors import ForgeError, explain
from stages.effect import Said
from stages.halt import Halt
from stages.state import Completed, Ending, State

_SHOWN = 200
"""Maximum characters of a value in a repr."""

R_co = TypeVar("R_co", default=object, covariant=True)
"""Type of a run's value: the workflow's `result`, object if it has none."""


class Finished(Struct, Generic[R_co], frozen=True, kw_only=True):
    """A run that reached a typed outcome, and its last state.

    `result` is the value as an instance of the workflow's result type, if it has one.
    """

    outcome: Ending
    state: State
    result: R_co | None = None

    @property
    def value(self) -> R_co:
        """The result; otherwise what the terminal tool returned, as JSON, or the answer in text.

        For a question or a hand-off, the outcome itself. Only a run that ended with its result has a value of the
        workflow's type; if a run may end otherwise, check `outcome` first.
        """
        return _value(self)  # type: ignore[return-value]  # see above

    def __repr__(self) -> str:
        """The shortened value and state."""
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
    """A run that ended without reaching its goal: the reason, and the last state, from which it can be resumed.

    It is the failure of a Result and never raised itself. It is an exception so that it can be the cause of what
    `unwrap` raises: the traceback then says why the run ended. `str()` gives that sentence.
    """

    __match_args__ = ("halt", "state")
    state: State

    def __init__(self, *, halt: Halt, state: State) -> None:
        super().__init__(explain(halt), state)
        self.halt = halt

    def __eq__(self, other: object) -> bool:
        """Same reason and same state."""
        return isinstance(other, Halted) and (self.halt, self.state) == (other.halt, other.state)

    def __hash__(self) -> int:
        """By the kind of halt and the run; the rest of a state is not hashable."""
        return hash((type(self.halt), self.state.run))

    def __reduce__(self) -> tuple[object, ...]:
        """Copy and pickle by fields."""
        return (_halted, (self.halt, self.state))

    def __repr__(self) -> str:
        """The shortened reason and state."""
        return f"Halted({type(self.halt).__name__}: {short_repr(str(self), quoted=False)}, {self.state!r})"


def _halted(halt: Halt, state: State) -> Halted:
    return Halted(halt=halt, state=state)


def short_repr(value: object, *, quoted: bool = True, most: int = _SHOWN) -> str:
    """The repr of the value, or the plain text of a str that is not `quoted`, shortened to `most` characters."""
    plain = value if isinstance(value, str) else repr(value)
    short = plain if len(plain) <= most else f"{plain[:most]}…"
    return repr(short) if quoted and isinstance(value, str) else short
