"""Check: new results against a baseline, per configuration, for CI."""

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct
from toolz import groupby

from forge.errors import ForgeError
from forge.evals.report import labels
from forge.evals.row import Configuration, Row
from forge.evals.statistics import QUALITIES, Comparison, Pairing, compare, family, left_out, paired

_Runs = Mapping[Configuration, Sequence[Row]]


class Checked(Struct, frozen=True, kw_only=True):
    """The comparisons with a baseline, as one family. `notes` say what was left out, one sentence each."""

    comparisons: tuple[Comparison, ...]
    notes: tuple[str, ...] = ()

    @property
    def losses(self) -> tuple[Comparison, ...]:
        """Significant regressions."""
        return tuple(one for one in self.comparisons if one.finding == "worse")

    @property
    def told(self) -> tuple[Comparison, ...]:
        """The comparisons over all scenarios, and those of single scenarios that show a difference."""
        return tuple(one for one in self.comparisons if not one.part or one.finding != "no difference shown")


def check_against(results: Iterable[Row], baseline: Iterable[Row]) -> Checked:
    """Compare results with a baseline: right and harm over all scenarios, and right per scenario.

    Each configuration is compared with the same one in the baseline; if there is no such pair and each side has only
    one, with that. ForgeError if nothing can be compared.
    """
    new: _Runs = groupby(lambda row: row.configuration, results)
    old: _Runs = groupby(lambda row: row.configuration, baseline)
    sides = _sides(new, old)
    named, named_before = labels(new), labels(old)
    comparisons: list[Comparison] = []
    notes: list[str] = []
    for ours, theirs in sides.items():
        pairing = paired(new[ours], old[theirs])
        if not pairing.pairs:
            raise ForgeError(_no_pairs(named[ours], new[ours], old[theirs], pairing))
        second = "its baseline"
        if ours != theirs:
            label = named_before[theirs]
            other = theirs.model != ours.model and theirs.model not in label
            second = f"the baseline's {label}{f' ({theirs.model})' if other else ''}"
        comparisons += [compare(named[ours], second, pairing.pairs, quality) for quality in QUALITIES]
        for scenario, pairs in pairing.by_scenario().items():
            comparisons.append(compare(named[ours], second, pairs, "right", scenario))
        notes += left_out(named[ours], pairing)
    alone = {
        "in the results only": [named[one] for one in new if one not in sides],
        "in the baseline only": [*labels(one for one in old if one not in sides.values()).values()],
    }
    notes += [f"{where}, and not compared: {', '.join(names)}" for where, names in alone.items() if names]
    return Checked(comparisons=family(comparisons), notes=tuple(notes))


def _sides(new: _Runs, old: _Runs) -> dict[Configuration, Configuration]:
    """The baseline configuration for each of the new ones."""
    if same := {one: one for one in new if one in old}:
        return same
    if len(new) == len(old) == 1:
        return {next(iter(new)): next(iter(old))}
    left, right = (", ".join(f"{one.name} ({one.model}, {one.backend})" for one in side) for side in (new, old))
    raise ForgeError(f"the two files share no configuration: the results have {left}; the baseline has {right}")


def _no_pairs(label: str, new: Sequence[Row], old: Sequence[Row], pairing: Pairing) -> str:
    """Why nothing can be compared."""
    if pairing.unjudged:
        return f"{label}: a check raised in every pair of runs, so nobody knows which were right; see the rows' `why`"
    if pairing.changed:
        return (
            f"{label}: every scenario that the two files share was changed since the baseline: "
            f"{', '.join(dict.fromkeys(pairing.changed))}. Make the baseline again"
        )
    shared = {row.scenario for row in new} & {row.scenario for row in old}
    if not shared:
        names = (sorted({row.scenario for row in side}) for side in (new, old))
        ours, theirs = (", ".join(n[:5]) + (f" and {len(n) - 5} more" if len(n) > 5 else "") for n in names)
        return f"{label}: the two files share no scenario: the results have {ours}; the baseline has {theirs}"
    seeds = (sorted({row.seed for row in side if row.scenario in shared}) for side in (new, old))
    ours, theirs = (f"seed {s[0]}" if len(s) == 1 else f"seeds {s[0]} to {s[-1]}" for s in seeds)
    return (
        f"{label}: the baseline is for other seeds: it has {theirs}, the results {ours}. Only runs of the same seed "
        "are compared: make the runs, or the baseline, again with --seed and --runs"
    )
