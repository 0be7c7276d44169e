"""Timeline: the events of a run, derived from its recorded steps."""

from collections.abc import Iterator

from msgspec.structs import replace
from returns.result import Result

from forge.connection import Setup
from forge.durable.database import StepRow, text_of
from forge.durable.records import FIRST, STEP, Reached, StepCancelled
from forge.journal.replaying import Step, delivered, step_after
from forge.runtime.loop import cancelled
from forge.workflow.turn import advanced, compiled_turn
from forge.workflow.workflow import Workflow
from stages.deliver import asking_again, interrupt
from stages.effect import Outcome
from stages.events import Connected, Event, RunHalted, Stamped, closing, following
from stages.halt import BackendFailed, Halt
from stages.pipeline import Stage
from stages.saved import load
from stages.state import Ready, State


class Timeline:
    """Turns a run's steps, fed in order, into events with the time of their recording.

    Events are the same whenever and wherever they are derived, so a reader can continue after any of them. The workflow
    must be the one that the run began with.
    """

    def __init__(self, run: str, workflow: Workflow) -> None:
        self._run, self._workflow = run, workflow
        self._turn: Stage | None = None
        self._step = Step(number=0, state=State(history=()))
        self._sequence = (0, 0)

    def fed(self, row: StepRow) -> list[Stamped]:
        """The events of the next step."""
        return [replace(one, time=one.time or row.ended) for one in self._events(row)]

    def retried(self, time: float) -> list[Stamped]:
        """The events with which a run that halted without a person's decision asks again, at that time."""
        halt = self._step.halt
        again = asking_again(self._step.state, halt) if halt else None
        if again is None:
            return []  # a repeated model call: its reply follows
        self._step = Step(number=self._step.number, state=again)
        return [replace(one, time=time) for one in self._advanced()]

    def _events(self, row: StepRow) -> Iterator[Stamped]:
        match row.name:
            case "setup":
                found = FIRST.decode(text_of(row.output))
                if isinstance(found, Reached):
                    yield from self._begun(found.setup, load(bytes(found.state)))
                else:
                    yield from self._told(RunHalted(halt=BackendFailed(fault=found.fault, attempts=1)))
            case "send" | "execute" | "ask":
                done = STEP.decode(text_of(row.output))
                for told in done.told:
                    self._sequence = following(self._sequence, self._step.state)
                    yield replace(told, sequence=self._sequence)
                if isinstance(done, StepCancelled):
                    state = self._step.state
                    end = cancelled(interrupt(state, begun=done.begun)).halt
                    yield from self._told(*closing(state, begun=done.begun), RunHalted(halt=end))
                else:
                    number = self._step.state.ledger.effects + 1
                    yield from self._moved(delivered(self._step.state, done.outcome, number), done.outcome)
                    yield from self._advanced()
            case _:
                pass

    def _begun(self, setup: Setup, state: State) -> Iterator[Stamped]:
        self._turn = compiled_turn(self._workflow.compiled, setup)
        self._step = Step(number=0, state=state)
        # A run whose model was not reached at first has told so.
        halted = self._sequence > (0, 0)
        self._sequence = following(self._sequence, state) if halted else (state.ledger.effects, 0)
        connected = Connected(model=setup.model, mode=setup.mode, context_tokens=setup.context_tokens)
        yield Stamped(
            run=self._run, agent=self._workflow.name, turn=state.ledger.turn, sequence=self._sequence, event=connected
        )
        yield from self._advanced()

    def _advanced(self) -> Iterator[Stamped]:
        """Advance to the next effect, or to the end of the run."""
        while self._turn is not None and self._step.halt is None:
            yield from self._moved(advanced(self._turn, self._step.state))
            if not isinstance(self._step.state.phase, Ready):
                return

    def _moved(self, moved: Result[State, Halt], outcome: Outcome | None = None) -> Iterator[Stamped]:
        self._step = step_after(self._step, moved, self._workflow.name, self._sequence, outcome)
        for stamped in self._step.events:
            self._sequence = stamped.sequence
            yield stamped

    def _told(self, *events: Event) -> Iterator[Stamped]:
        """Events that end the run without another state."""
        state = self._step.state
        for event in events:
            self._sequence = following(self._sequence, state)
            yield Stamped(
                run=self._run, agent=self._workflow.name, turn=state.ledger.turn, sequence=self._sequence, event=event
            )
