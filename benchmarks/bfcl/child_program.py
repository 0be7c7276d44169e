"""The child process in which BFCL's own code runs: its checkers, and the simulated functions of its conversations.

Run as `python child_program.py FOLDER`, the folder being the one that holds `bfcl_eval` and `mpmath`. A question as
JSON on standard input, the answer as a JSON string on standard output. Only the standard library.

The package runs the calls of conversations as texts, by `eval`. Here only its own answers are: a model's call is a
method of a simulated class, called with values from JSON. How long that takes is up to the model all the same (9 to the
power of 387,420,489), so processor time and memory are bounded.
"""

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from types import ModuleType
from typing import Any, TypedDict

_MEMORY = 1024 * 1024 * 1024
"""Bytes of address space."""

_PROCESSOR = 2
"""Seconds of processor time; a question takes a tenth of one."""

_LONGEST = 100_000
"""Maximum characters of what a call returns; more is cut off."""


class SimulatedCall(TypedDict):
    """A call of a simulated function."""

    name: str
    arguments: dict[str, object]


def _bound() -> None:
    """Limit this process's processor time and memory."""
    if sys.platform == "win32":
        return
    import resource  # noqa: PLC0415 - Windows has none

    resource.setrlimit(resource.RLIMIT_CPU, (_PROCESSOR, _PROCESSOR))
    # macOS knows the limit and does not take it.
    if sys.platform == "linux":
        resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))


def _prompt(functions: Sequence[object]) -> str:
    prompts = import_module("bfcl_eval.constants.default_prompts")
    return str(vars(prompts)["_DEFAULT_SYSTEM_PROMPT"].format(functions=json.dumps(functions, indent=4)))


class _Renamed:
    """What is known of every model: it cannot say points in names."""

    underscore_to_dot = True


class _Models(dict[str, type[_Renamed]]):
    def __missing__(self, name: str) -> type[_Renamed]:
        return _Renamed


def _stand_in(name: str, **members: object) -> None:
    module = ModuleType(name)
    vars(module).update(members)
    sys.modules[name] = module


def _calls(category: str, functions: Sequence[object], calls: Sequence[object], answer: object) -> str:
    """What is wrong with the calls of one turn.

    The checker asks a table of models for one thing, whether points in the names of functions were replaced, and the
    table imports a client for each model's service: here a table of that one answer stands in its place, and so for
    the types of Java and JavaScript, which no category here has.
    """
    _stand_in("bfcl_eval.constants.model_config", MODEL_CONFIG_MAPPING=_Models())
    for language in ("java", "js"):
        name = f"bfcl_eval.eval_checker.ast_eval.type_convertor.{language}_type_converter"
        _stand_in(name, **{f"{language}_type_converter": None})
    python = import_module("bfcl_eval.constants.enums").Language.PYTHON
    checker = import_module("bfcl_eval.eval_checker.ast_eval.ast_checker")
    found = checker.ast_checker(functions, calls, answer, python, category, "any")
    return "" if found["valid"] else f"{found.get('error_type', 'wrong')}: {found.get('error', '')}"[:500]


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

    def _returned(self, instances: Mapping[str, object], call: SimulatedCall) -> str:
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


def _conversations() -> Any:
    return import_module("bfcl_eval.eval_checker.multi_turn_eval.multi_turn_checker")


def _result(entry: Mapping[str, Any], names: Sequence[str], calls: Sequence[SimulatedCall]) -> str:
    """What the last of the calls returns."""
    results, _ = _Simulation(_conversations(), names).run(
        func_call_list=calls,
        initial_config=entry["initial_config"],
        involved_classes=entry["involved_classes"],
        model_name="model",
        test_entry_id=entry["id"],
    )
    return results[-1][:_LONGEST]


def _conversation(
    entry: Mapping[str, Any], names: Sequence[str], turns: Sequence[Sequence[SimulatedCall]], answer: object
) -> str:
    """What is wrong with the calls for each message."""
    checker = _conversations()
    checker.execute_multi_turn_func_call = _Simulation(checker, names).run
    # The checker has steps in a turn: it puts their results together.
    steps = [[calls] if calls else [] for calls in turns]
    found = checker.multi_turn_checker(steps, answer, entry, "multi_turn_base", "model")
    if found["valid"]:
        return ""
    details = found.get("details", {})
    facts = details.get("differences") or details.get("missing_items") or ""
    return f"{found['error_type']}: {found['error_message']} {facts}".strip()[:500]


_ANSWERS: Mapping[str, Callable[..., str]] = {
    "prompt": _prompt,
    "calls": _calls,
    "result": _result,
    "conversation": _conversation,
}

if __name__ == "__main__":
    _bound()
    sys.path.insert(0, sys.argv[1])
    question = json.load(sys.stdin)
    json.dump(_ANSWERS[question.pop("kind")](**question), sys.stdout)
