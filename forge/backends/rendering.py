"""Renders conversations with a chat template in a separate process, because the template is untrusted code.

Run as a script: reads a JSON object from standard input, writes a JSON array to standard output, with null for each
conversation that the template refuses. The operating system limits memory and time (on Windows only the parent's
deadline does): no limit inside Python holds against `'a' * 10**9` or nested loops.
"""

import json
import sys
from collections.abc import Iterator
from typing import NoReturn, TypedDict

_MEMORY = 512 * 1024 * 1024
"""Maximum bytes of address space."""

_PROCESSOR = 3
"""Maximum seconds of CPU time; a real template takes a tenth of one, mostly to import jinja2."""

_LONGEST = 100_000
"""Maximum characters of a rendered conversation; a longer one counts as refused."""


class _Question(TypedDict):
    """`path` is the module search path; each conversation is a list of messages."""

    path: list[str]
    template: str
    conversations: list[list[dict[str, object]]]


def bound() -> None:
    """Limit this process's CPU time and memory."""
    if sys.platform == "win32":
        return
    import resource  # noqa: PLC0415 - Windows has none

    resource.setrlimit(resource.RLIMIT_CPU, (_PROCESSOR, _PROCESSOR))
    # macOS has the limit but does not accept it.
    if sys.platform == "linux":
        resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))


def rendered(question: _Question) -> Iterator[str | None]:
    """Each conversation as rendered by the template; None if it refuses it or the result is too long."""
    from jinja2 import TemplateError  # noqa: PLC0415 - found by the path that the question brings
    from jinja2.ext import loopcontrols  # noqa: PLC0415
    from jinja2.sandbox import ImmutableSandboxedEnvironment  # noqa: PLC0415

    def refuse(message: str) -> NoReturn:
        raise TemplateError(message)

    environment = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=[loopcontrols])
    environment.filters["tojson"] = lambda value, **_: json.dumps(value, ensure_ascii=False)
    environment.globals |= {"raise_exception": refuse, "strftime_now": lambda _: ""}
    parameters = {"type": "object", "properties": {}}
    tool = {"type": "function", "function": {"name": "other", "description": "", "parameters": parameters}}
    fixed = {"tools": [tool], "add_generation_prompt": False, "bos_token": "", "eos_token": ""}
    template = environment.from_string(question["template"])
    for messages in question["conversations"]:
        try:
            text = ""
            for piece in template.generate(messages=messages, **fixed):
                text += piece
                if len(text) > _LONGEST:
                    break
            yield text if len(text) <= _LONGEST else None
        # The template is foreign code: any exception is a refusal.
        except Exception:  # noqa: BLE001
            yield None


if __name__ == "__main__":
    bound()
    asked: _Question = json.load(sys.stdin)
    sys.path[:] = asked["path"]
    json.dump(list(rendered(asked)), sys.stdout)
