"""Nudges in the user's words: texts with placeholders, or functions, in the place of forge's."""

from collections.abc import Mapping
from typing import get_args

from forge.runtime.callbacks import placed
from forge.workflow.template import fill, placeholders
from stages.nudges import Correction, Reword
from stages.objection import NudgeKind

Nudges = Mapping[NudgeKind, str | Reword]
"""By kind: a text, in which `{tool}`, `{text}`, `{allowed}`, `{pending}` stand for what went wrong; or a function."""

KINDS: tuple[str, ...] = get_args(NudgeKind)
WORDS = ("allowed", "pending", "text", "tool")


def nudge_mistakes(nudges: Nudges) -> tuple[str, ...]:
    """What is wrong with them, a sentence each."""
    found = [f"nudges: {kind!r} is no kind; the kinds are: {', '.join(KINDS)}" for kind in nudges if kind not in KINDS]
    for kind, given in nudges.items():
        if not isinstance(given, str):
            continue
        if not given.strip():
            found.append(f"nudges: the text for {kind!r} is empty; the model would be told nothing")
        else:
            found += [
                f"nudges: the text for {kind!r} has the placeholder {{{name}}}; there are: {', '.join(WORDS)}; "
                f"write {{{{{name}}}}} for literal braces"
                for name in sorted(placeholders(given) - {*WORDS})
            ]
    return tuple(found)


def rewords(nudges: Nudges) -> dict[NudgeKind, Reword]:
    """All of them as functions."""
    return {kind: _function(kind, given) for kind, given in nudges.items()}


def _function(kind: NudgeKind, given: str | Reword) -> Reword:
    return _filling(given) if isinstance(given, str) else placed(given, f"nudges[{kind!r}]", str)


def _filling(template: str) -> Reword:
    def text(wrong: Correction) -> str:
        listed = {"allowed": ", ".join(wrong.allowed) or "none", "pending": ", ".join(wrong.pending) or "none"}
        return fill(template, {**listed, "text": wrong.text, "tool": wrong.tool})

    return text
