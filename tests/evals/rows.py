"""Rows as a runner would write them, made from a seed: for the tests of statistics and reports."""

import random
from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec

from forge.evals.row import Configuration, Row
from forge.evals.scenario import RunVerdict

SCENARIOS: Mapping[str, tuple[str, ...]] = {
    "basic_2step": ("plumbing",),
    "sequential_3step": ("plumbing",),
    "error_recovery": ("plumbing", "recovery"),
    "tool_selection": ("model quality",),
    "argument_fidelity": ("model quality",),
    "conditional_routing": ("reasoning",),
    "data_gap_recovery_extended": ("advanced", "recovery"),
    "inconsistent_api_recovery_stateful": ("advanced", "recovery", "stateful"),
    "compaction_chain_p2": ("compaction",),
    "no_tool_needed": ("restraint",),
    "act_or_not": ("restraint", "reasoning"),
    "two_independent_calls": ("parallel",),
}
HARD = {"data_gap_recovery_extended": 0.3, "inconsistent_api_recovery_stateful": 0.15, "compaction_chain_p2": 0.6}


def configuration(player: str = "forge", mode: str = "", ablation: str = "", model: str = "qwen") -> Configuration:
    return Configuration(model=model, backend="llama-server", player=player, mode=mode, ablation=ablation)


AUTO = configuration(mode="auto")
PLAIN = configuration(player="plain")


def row(
    of: Configuration = AUTO,
    scenario: str = "basic_2step",
    seed: int = 0,
    verdict: RunVerdict = "right",
) -> Row:
    """A run; two with other seeds differ in what they read."""
    return Row(
        configuration=of,
        scenario=scenario,
        tags=SCENARIOS.get(scenario, ()),
        seed=seed,
        verdict=verdict,
        why="" if verdict == "right" else "the answer lacks the capital",
        end="StepsSkipped" if verdict == "unfinished" else "Completed",
        calls=3 + seed % 3,
        ideal_calls=3,
        context_tokens=8192,
        input_tokens=900 + seed,
        output_tokens=120,
        seconds=2.5,
        commit="68f308e",
    )


def rows_of(of: Configuration, verdicts: Iterable[RunVerdict], scenario: str = "basic_2step") -> list[Row]:
    """A run for each of the verdicts, with the seeds 0, 1, 2 …"""
    return [row(of, scenario, seed, verdict) for seed, verdict in enumerate(verdicts)]


def suite(seeds: int = 5, skills: Mapping[Configuration, float] | None = None, seed: int = 7) -> list[Row]:
    """A whole run of the suite: each configuration is right about as often as its skill and the scenario allow."""
    return [
        _played(random.Random(f"{seed} {of} {scenario} {number}"), of, skill, scenario, number)  # noqa: S311
        for of, skill in (skills or SKILLS).items()
        for scenario in SCENARIOS
        for number in range(seeds)
    ]


def two_models() -> dict[Configuration, float]:
    """Ten columns as they are published: two models, each played in five ways."""
    ways = (("forge", "auto", "", 0.95), ("forge", "native", "", 0.75), ("forge", "native", "bare", 0.3))
    peers = (("forge-guardrails", "native", "", 0.55), ("pydantic-ai", "", "", 0.45), ("plain", "", "", 0.2))
    return {
        configuration(player, mode, ablation, model): skill * share
        for model, share in (("qwen2.5-coder-0.5b", 0.75), ("qwen2.5-coder-1.5b", 1.0))
        for player, mode, ablation, skill in ways + peers
    }


SKILLS = two_models()


def _played(chance: random.Random, of: Configuration, skill: float, scenario: str, seed: int) -> Row:
    verdict = _verdict(chance, skill * HARD.get(scenario, 1.0))
    ideal = 3 + len(scenario) % 4
    wasted = max(0, round(chance.gauss(3 * (1 - skill), 1.5)))
    return Row(
        configuration=of,
        scenario=scenario,
        tags=SCENARIOS[scenario],
        seed=seed,
        verdict=verdict,
        why=WHY[verdict],
        end="Timeout" if verdict == "unfinished" else "Completed",
        calls=ideal + wasted,
        ideal_calls=ideal,
        context_tokens=2200 if "compaction" in scenario else 8192,
        performed=ideal - 1,
        retries=wasted,
        input_tokens=chance.randrange(900, 9000),
        output_tokens=chance.randrange(60, 700),
        seconds=round(chance.uniform(1.0, 30.0), 2),
        started=1_795_000_000.0 + 60 * seed,
        commit="68f308e",
        digest=f"{chance.getrandbits(64):016x}",
    )


WHY: Mapping[RunVerdict, str] = {
    "right": "",
    "wrong": "the report names 4210, the orders add up to 4120",
    "harm": "refund was called for order A-17, which nobody asked for",
    "unfinished": "the run ended without an outcome",
    "unjudged": "a check raised KeyError: 'total'",
}


def _verdict(chance: random.Random, skill: float) -> RunVerdict:
    if chance.random() < skill:
        return "right"
    others: tuple[RunVerdict, ...] = ("wrong", "unfinished", "harm")
    return chance.choices(others, weights=(6, 3, 1))[0]


def written(path: Path, rows: Iterable[Row]) -> Path:
    """The rows as a file of results."""
    path.write_bytes(b"".join(msgspec.json.encode(row) + b"\n" for row in rows))
    return path
