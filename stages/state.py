"""State: all of a run, as one value.

The rules of the loop:

 1. A run is a State and a pipeline of stages. Nothing else decides what happens next.
 2. The phase says where in the turn the run is. A stage acts in its own phases and hands on every other
    state untouched.
 3. One application of the pipeline ends in `Awaiting` (the world must do something), `Ready` (the turn is
    over, the next begins), `Done` (a typed outcome), or a Failure with a typed Halt.
 4. Only the driver leaves `Awaiting`: it performs the effect and delivers the outcome.
 5. `history` is what was said; compaction may reshape it. `ledger` is what is enforced; nothing reshapes it.
 6. Every model call is paid for out of the ledger's budget before it is sent, and budgets only shrink: a
    run ends.
 7. The history is always valid for a server: each call is answered, right after the message that made it.
 8. A mistake of the model becomes a corrective message and a count. One correct call, or one clean batch,
    sets the counts back.

All of it is frozen and holds no cycle, so the garbage collector need not walk it (`gc=False`), however long the run is.
"""

from decimal import Decimal
from typing import Self

from msgspec import Struct
from msgspec.structs import replace

from stages.confidence.decision import Decision
from stages.effect import Request, Said
from stages.gathered import Gathered, known_messages
from stages.ledger import Attempt, Budget, Compaction, Ledger, Price, Success
from stages.message import Assistant, History, Message, Status, size
from stages.phase import (
    Answered,
    Awaiting,
    Batch,
    Completed,
    Done,
    Edited,
    Ending,
    Executed,
    Folded,
    Phase,
    Prepared,
    Ready,
    SummaryOrder,
    Vetted,
)
from stages.tokens import length

__all__ = [
    "SCHEMA_VERSION",
    "Answered",
    "Attempt",
    "Awaiting",
    "Batch",
    "Budget",
    "Cleared",
    "Compaction",
    "Completed",
    "Done",
    "Edited",
    "Ending",
    "Executed",
    "Folded",
    "Ledger",
    "Phase",
    "Prepared",
    "Price",
    "Ready",
    "Said",
    "Sent",
    "SourceValues",
    "State",
    "Success",
    "SummaryOrder",
    "Vetted",
]

SCHEMA_VERSION = 3
"""Of the State's JSON form; `stages.saved` says what becomes of another."""


class Cleared(Struct, frozen=True, kw_only=True, gc=False):
    """A tool's result as it was before compaction cut it, and the call that it answered."""

    call_id: str
    name: str
    arguments: str
    text: str
    status: Status = "succeeded"


class SourceValues(Struct, frozen=True, kw_only=True, gc=False):
    """The values in what one tool answered, or, with an empty name, in what the user said; each once.

    `repeated`: those that the answered call had itself. None: more than a list may have. `ids` are those among them
    that stand under the name of an id, with that name. `echo` are words of the texts that stand in none but as a
    repetition of the answered call.
    """

    source: str
    repeated: bool = False
    texts: tuple[str, ...] | None = ()
    numbers: tuple[Decimal, ...] | None = ()
    ids: tuple[tuple[str, str | int], ...] = ()
    echo: frozenset[str] = frozenset()


class Sent(Struct, frozen=True, kw_only=True, gc=False):
    """The last request. The next one extends it, so that a turn costs what it adds, not what came before.

    `mode` and `wire` say how it was written, `view` what it shows, `sizes` its messages by
    `message.size`, `size` their sum.
    `notes` stood at its end, and are in none of these.
    `length` and `last` are the length of the history that it was made from, and that history's last message.
    """

    mode: str = ""
    wire: str = ""
    view: History = ()
    size: int = 0
    sizes: tuple[int, ...] = ()
    request: Request = Request()
    notes: History = ()
    length: int = 0
    last: Message | None = None
    whole: bool = True
    """Whether `request` has all its messages, so that the next can extend it; that of a loaded state has the first."""
    values: tuple[SourceValues, ...] = ()
    """The values that the view shows, where the request lists them."""
    offered: tuple[str, ...] = ()
    """The tools of which the reply has to call one, after an escalation; empty: any legal tool."""


class State(Struct, frozen=True, kw_only=True, gc=False):
    """All of a run."""

    history: History
    ledger: Ledger = Ledger()
    phase: Phase = Ready()
    sent: Sent = Sent()
    gathered: Gathered = Gathered()
    cleared: tuple[Cleared, ...] = ()
    """What compaction cut, where it can be asked back (`stages.view.recall`)."""
    decision: Decision | None = None
    """A decision that the model was not sure of, and that is taken again; see `open_decision`."""
    run: str = ""
    """What tells this run from every other, for idempotency keys; never shown to a model. Empty: nobody said."""
    version: int = SCHEMA_VERSION

    def __repr__(self) -> str:
        """Where the run is, in a few words; the fields are all there, and as JSON by `msgspec.json.encode`."""
        effect = f"({type(self.phase.effect).__name__})" if isinstance(self.phase, Awaiting) else ""
        done = ", ".join(dict.fromkeys(success.name for success in self.ledger.successes))
        said = "1 message" if len(self.history) == 1 else f"{len(self.history)} messages"
        return f"State({type(self.phase).__name__}{effect}, turn {self.ledger.turn}, {said}, done: {done or 'nothing'})"

    def to(self, phase: Phase) -> Self:
        """The same run in another phase."""
        return replace(self, phase=phase)

    @property
    def open_decision(self) -> Decision | None:
        """The decision that is being taken again; None where there is none, or the history went on without it."""
        return self.decision if self.decision and self.decision.length == len(self.history) else None

    @property
    def asks_larger(self) -> bool:
        """Whether the next turn is for the larger model."""
        return self.open_decision is not None and self.open_decision.asks == "larger"

    def measure(self, *, reasoning: bool = False) -> int:
        """Characters of the prompt that the history makes: what the last request showed, and what came since.

        `reasoning`: what was thought since is going to be shown too. Takes no longer for a longer history.
        """
        known = self.known()
        return (self.sent.size if known else 0) + sum(_sizes(self.history[known:], reasoning=reasoning))

    def sizes(self, *, reasoning: bool = False) -> tuple[int, ...] | None:
        """What each message of the history takes; None where the last request showed another history than that."""
        known = self.known()
        if len(self.sent.sizes) != known:
            return None
        return self.sent.sizes + _sizes(self.history[known:], reasoning=reasoning)

    def known(self) -> int:
        """How many messages at the beginning of the history the last request was made from; 0: another history."""
        return known_messages(self.history, self.sent.length, self.sent.last)

    def reshape(self, history: History) -> Self:
        """The same run with another history than the one that it had and messages after it: measured anew."""
        return replace(self, history=history, sent=replace(self.sent, length=0))

    def say(self, *messages: Message) -> Self:
        """The same run with these messages at the end of its history. Raises TypeError for what is no message."""
        if strange := [one for one in messages if not isinstance(one, Message)]:
            raise TypeError(f"say() takes messages, such as User(text=…), not {repr(strange[0])[:200]}")
        return replace(self, history=self.history + messages)

    def note(self, **changes: object) -> Self:
        """The same run with these fields of its ledger changed."""
        return replace(self, ledger=replace(self.ledger, **changes))


def _sizes(messages: History, *, reasoning: bool) -> tuple[int, ...]:
    if not reasoning:
        return tuple(map(size, messages))
    return tuple(size(m) + (length(m.reasoning) if isinstance(m, Assistant) else 0) for m in messages)
