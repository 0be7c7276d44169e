"""A model's prior preferences among values, measured from journals, without known answers."""

from collections.abc import Iterable, Iterator
from pathlib import Path

from msgspec import UNSET, Raw

from forge.errors import ForgeError
from forge.journal.records import Journal, SentPart, read_journal
from stages.confidence.measure import MeasuredCall, MeasuredPriors, measured_calls, offer_of, priors_of
from stages.effect import Replied
from stages.state import MAIN


def measured_priors(journals: Iterable[Path]) -> MeasuredPriors:
    """The priors of these runs' model, for each argument with a fixed set of values.

    ForgeError if the runs used several models, or recorded no probabilities. JournalError for an invalid journal.
    """
    calls: list[MeasuredCall] = []
    models: set[str] = set()
    for path in journals:
        journal = read_journal(path)
        models.add(journal.header.setup.model)
        calls += _calls(journal)
    if len(models) > 1:
        raise ForgeError(f"the journals are of several models: {', '.join(sorted(models))}; pass those of one")
    found = priors_of(calls)
    if not found:
        raise ForgeError(
            "the journals contain no probabilities of values: measure them with unsure=WhenUnsure(below=0, then=()) in "
            "the workflow, and tools with an enum or a boolean"
        )
    return MeasuredPriors(model=models.pop(), priors=found)


def _calls(journal: Journal) -> Iterator[MeasuredCall]:
    """The calls of its replies, with the probabilities of their tokens."""
    tail = Raw(b"{}")
    for entry in journal.entries:
        match entry.effect, entry.outcome:
            case SentPart() as part, outcome:
                tail = tail if part.tail is UNSET else part.tail
                if isinstance(outcome, Replied) and part.target == MAIN:
                    reply = outcome.reply
                    yield from measured_calls(reply.tokens, reply.text, offer_of(tail, ()))
            case _:
                pass
