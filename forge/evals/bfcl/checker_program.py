"""The child process that asks BFCL's own checker: a JSON line in, a JSON line out. Only the standard library.

Run as `python checker_program.py FOLDER`, the folder being the one that holds `bfcl_eval`. The checker asks a table of
models for one thing, whether points in the names of functions were replaced, and the table imports a client for each
model's service; here a table of that one answer stands in its place, and so for the types of Java and JavaScript,
which no category here has.
"""

import json
import sys
from types import ModuleType


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


def main() -> None:
    """Answer until the input ends."""
    sys.path.insert(0, sys.argv[1])
    _stand_in("bfcl_eval.constants.model_config", MODEL_CONFIG_MAPPING=_Models())
    for language in ("java", "js"):
        name = f"bfcl_eval.eval_checker.ast_eval.type_convertor.{language}_type_converter"
        _stand_in(name, **{f"{language}_type_converter": None})
    from bfcl_eval.constants.default_prompts import (  # type: ignore[import-not-found]  # noqa: PLC0415 - the path is set
        _DEFAULT_SYSTEM_PROMPT,
    )
    from bfcl_eval.constants.enums import Language  # type: ignore[import-not-found]  # noqa: PLC0415
    from bfcl_eval.eval_checker.ast_eval.ast_checker import (  # type: ignore[import-not-found]  # noqa: PLC0415
        ast_checker,
    )

    for line in sys.stdin:
        asked = json.loads(line)
        if asked["category"] == "prompt":
            answer = _DEFAULT_SYSTEM_PROMPT.format(functions=json.dumps(asked["functions"], indent=4))
        else:
            found = ast_checker(
                asked["functions"], asked["calls"], asked["answer"], Language.PYTHON, asked["category"], "any"
            )
            answer = "" if found["valid"] else f"{found.get('error_type', 'wrong')}: {found.get('error', '')}"[:500]
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
