"""What a model prefers whatever it is asked, from the journals of runs: no answers need to be known for it."""

from collections.abc import Iterable, Iterator
from pathlib import Path

from msgspec import UNSET, Raw

from forge.errors import ForgeError
from forge.journal.records import Journal, SentPart, read_journal
from stages.confidence.measure import MeasuredCall, MeasuredPriors, measured_calls, offer_of, priors_of
from stages.effect import Replied
from stages.state import MAIN


def measured_priors(journals: Iterable[Path]) -> MeasuredPriors:
    """The priors of the model that these runs were made with, of each argument that is one of several values.

    ForgeError if the runs are of several models, or hold no probabilities. JournalError for a journal that is none.
    """
    calls: list[MeasuredCall] = []
    models: set[str] = set()
    for path in journals:
        journal = read_journal(path)
        models.add(journal.header.setup.model)
        calls += _calls(journal)
    if len(models) > 1:
        raise ForgeError(f"the journals are of several models: {', '.join(sorted(models))}; give those of one")
    found = priors_of(calls)
    if not found:
        raise ForgeError(
            "the journals hold no probability of a value: the runs have to measure it, with unsure=WhenUnsure(below=0, "
            "then=()) in the workflow, and tools with an enum or a boolean"
        )
    return MeasuredPriors(model=models.pop(), priors=found)


def _calls(journal: Journal) -> Iterator[MeasuredCall]:
    """The calls of its replies as the model's own tokens have them."""
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
