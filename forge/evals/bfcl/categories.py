"""The categories of BFCL as scenarios: one question a seed, in an order that a seed does not choose."""

import hashlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import msgspec

from forge.evals.bfcl.checker import Checker
from forge.evals.bfcl.conversations import conversation_world
from forge.evals.bfcl.questions import question_world
from forge.evals.scenario import Scenario, World

CATEGORIES: Mapping[str, str] = MappingProxyType(
    {
        "simple_python": "one function, one call",
        "multiple": "several functions, one call of the right one",
        "parallel": "one function, several calls in one reply",
        "parallel_multiple": "several functions, several calls in one reply",
        "irrelevance": "no function fits: no call",
        "live_simple": "as simple, asked by users",
        "live_multiple": "as multiple, asked by users",
        "live_parallel": "as parallel, asked by users",
        "live_parallel_multiple": "as parallel_multiple, asked by users",
        "live_irrelevance": "as irrelevance, asked by users",
        "live_relevance": "a function fits: at least one call, whichever",
        "multi_turn_base": "conversations of several turns, whose functions are run, simulated",
    }
)


def scenarios(checker: Checker, categories: Iterable[str]) -> tuple[Scenario, ...]:
    """These categories; a seed from 1 on is the number of a question."""
    return tuple(_scenario(checker, name) for name in categories)


def _scenario(checker: Checker, name: str) -> Scenario:
    entries, answers = _entries(checker.package, name), _answers(checker.package, name)
    several_turns = name == "multi_turn_base"

    def world(seed: int) -> World:
        entry = entries[seed - 1]
        answer = answers.get(entry["id"])
        if several_turns:
            return conversation_world(checker.package, entry, answer)
        return question_world(checker, name, entry, answer)

    return Scenario(
        name=f"bfcl/{name}",
        about=CATEGORIES[name],
        world=world,
        # The mean conversation has 3.7 turns: a reply with calls, then one with words.
        ideal_calls=7 if several_turns else 1,
        tags=frozenset({"bfcl"}),
        # Up to 39 functions take 5,000 tokens.
        context_tokens=16384 if several_turns else 8192,
        seeds=len(entries),
    )


def _entries(package: Path, category: str) -> list[dict[str, Any]]:
    """The questions in the order of a hash, so that the first hundred are a fair sample."""
    entries = _lines(package / "data" / f"BFCL_v4_{category}.json")
    return sorted(entries, key=lambda entry: hashlib.sha256(entry["id"].encode()).digest())


def _answers(package: Path, category: str) -> Mapping[str, object]:
    file = package / "data" / "possible_answer" / f"BFCL_v4_{category}.json"
    return {answer["id"]: answer["ground_truth"] for answer in _lines(file)} if file.exists() else {}


def _lines(file: Path) -> list[dict[str, Any]]:
    return [msgspec.json.decode(line, type=dict[str, Any]) for line in file.read_bytes().splitlines()]
