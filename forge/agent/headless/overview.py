"""Overview: the files that the agent of a task is shown before it begins, so that it can begin with the change."""

from itertools import islice

from forge.agent.files.root import Parts, Root, shown
from forge.agent.files.texts import lines_of
from forge.agent.files.walk import walked
from forge.agent.headless.limits import Limits, not_written
from forge.errors import ToolResolutionError

_SHOWN = 6_000
"""Maximum characters of all files together: about a quarter of a small model's context of 8,192 tokens."""

_LOOKED_AT, _READ = 2_000, 20
"""Maximum files whose names are looked at, and of those that are read."""


def overview(root: Root, limits: Limits, said: str) -> str:
    """The files that may be changed or that are named in what is said of the task, whole, as many as there is room for.

    Those that are named come first, each as it is, to be copied. Empty where there are none. Hidden files,
    which may hold secrets, are shown only if they are named.
    """
    files = [one.parts for one in islice(walked(root, ()), _LOOKED_AT) if one.kind == "file"]
    wanted = [parts for parts in files if shown(*parts) in said or _may_be_changed(parts, limits)]
    wanted.sort(key=lambda parts: (not_written(limits, parts) is not None, shown(*parts) not in said))
    told: list[str] = []
    room = _SHOWN
    for parts in wanted[:_READ]:
        text = _whole(root, parts)
        if 0 < len(text) <= room:
            told.append(text)
            room -= len(text)
    return "\n\n".join(told)


def _may_be_changed(parts: Parts, limits: Limits) -> bool:
    return not_written(limits, parts) is None and not any(name.startswith(".") for name in parts)


def _whole(root: Root, parts: Parts) -> str:
    """The file under its name; empty for what is no text or is empty."""
    try:
        lines = lines_of(root.read(parts))
    except ToolResolutionError:
        return ""
    return "\n".join([f"{shown(*parts)}:", "```", *lines, "```"]) if lines else ""
