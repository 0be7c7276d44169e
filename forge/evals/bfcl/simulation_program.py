"""The child process of BFCL's conversations: runs their simulated functions, and has the package's checker judge.

Run as `python simulation_program.py FOLDER`, the folder being the one that holds `bfcl_eval` and `mpmath`. On standard
input a JSON object, on standard output a JSON string: what the last call returned; where the right answer is given too,
what is wrong with the calls. Only the standard library.

The package runs calls as texts, by `eval`. Here only its own answers are: a model's call is a method of a simulated
class, called with values from JSON. How long it takes is up to the model all the same (9 to the power of 387,420,489),
so processor time and memory are bounded.
"""

import importlib
import json
import sys
from collections.abc import Mapping, Sequence
from typing import Any, TypedDict

_MEMORY = 1024 * 1024 * 1024
"""Bytes of address space."""

_PROCESSOR = 2
"""Seconds of processor time; a conversation takes a tenth of one."""

_LONGEST = 100_000
"""Maximum characters of an answer; a result is cut there."""


class _Call(TypedDict):
    name: str
    arguments: dict[str, object]


class _Question(TypedDict):
    """`entry` is the package's, `names` the functions that were offered; `turns` the calls for each message."""

    entry: dict[str, Any]
    names: list[str]
    turns: list[list[_Call]]
    answer: list[list[str]] | None


def _bound() -> None:
    """Limit this process's processor time and memory."""
    if sys.platform == "win32":
        return
    import resource  # noqa: PLC0415 - Windows has none

    resource.setrlimit(resource.RLIMIT_CPU, (_PROCESSOR, _PROCESSOR))
    # macOS knows the limit and does not take it.
    if sys.platform == "linux":
        resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))


class _Simulation:
    """Stands in the checker's place for running calls."""

    def __init__(self, checker: Any, names: Sequence[str]) -> None:
        self._evaluated = checker.execute_multi_turn_func_call
        self._names = frozenset(names)

    def run(
        self, *, func_call_list: Sequence[Any], model_name: str, **same: Any
    ) -> tuple[list[str], Mapping[str, object]]:
        """What each call returned, as text, and the instances of the classes; the arguments are the package's."""
        if model_name.endswith("_ground_truth"):
            found: tuple[list[str], Mapping[str, object]] = self._evaluated(
                func_call_list=func_call_list, model_name=model_name, **same
            )
            return found
        _, instances = self._evaluated(func_call_list=[], model_name=model_name, **same)
        return [self._returned(instances, call) for call in func_call_list], instances

    def _returned(self, instances: Mapping[str, object], call: _Call) -> str:
        name = call["name"]
        owner = next((one for one in instances.values() if name in self._names and hasattr(one, name)), None)
        if owner is None:
            return f"Error during execution: name {name!r} is not defined"
        try:
            return _text(getattr(owner, name)(**call["arguments"]))
        # The checker compares texts, and this is the text of a call that failed, whatever it raised.
        except Exception as error:  # noqa: BLE001
            return f"Error during execution: {error}"


def _text(value: object) -> str:
    """A result as the package writes it."""
    if not isinstance(value, dict):
        return str(value)
    try:
        return json.dumps(value)
    except (TypeError, ValueError):
        return str(value)


def _answered(question: _Question) -> str:
    checker = importlib.import_module("bfcl_eval.eval_checker.multi_turn_eval.multi_turn_checker")
    simulation = _Simulation(checker, question["names"])
    entry, turns = question["entry"], question["turns"]
    if question["answer"] is None:
        results, _ = simulation.run(
            func_call_list=[call for calls in turns for call in calls],
            initial_config=entry["initial_config"],
            involved_classes=entry["involved_classes"],
            model_name="model",
            test_entry_id=entry["id"],
        )
        return results[-1]
    vars(checker)["execute_multi_turn_func_call"] = simulation.run
    # The checker has steps in a turn: it puts their results together.
    steps = [[calls] if calls else [] for calls in turns]
    found = checker.multi_turn_checker(steps, question["answer"], entry, "multi_turn_base", "model")
    return "" if found["valid"] else _wrong(found)


def _wrong(found: Mapping[str, Any]) -> str:
    details = found.get("details", {})
    facts = details.get("differences") or details.get("missing_items") or ""
    return f"{found['error_type']}: {found['error_message']} {facts}".strip()[:500]


if __name__ == "__main__":
    _bound()
    sys.path.insert(0, sys.argv[1])
    asked: _Question = json.load(sys.stdin)
    json.dump(_answered(asked)[:_LONGEST], sys.stdout)
