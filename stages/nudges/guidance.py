"""Guidance: what an agent's system prompt says of how a turn ends."""

from collections.abc import Collection


def how_to_end(tools: Collection[str], *, words: bool) -> str:
    """The part about those of the built-in tools that there are. `words`: an answer without a call is welcome."""
    known = (sentence for name, sentence in _SENTENCES if name in tools)
    spoken = ("To answer a question or to talk, just write your answer.",) if words else ()
    return "\n".join((*known, *spoken)) if tools else ""


def asked_back(tool: str) -> str:
    """For a question to the user that is the user's own."""
    return (
        f"[Repeats] This is what the user asked you, so {tool} was not run. Find the answer with the other tools, or "
        "ask only for what is missing."
    )


_SENTENCES = (
    ("task_completion", "When everything that the user asked for is done, call task_completion with the result."),
    ("ask_question", "If something is missing that only the user knows, call ask_question. Never make it up."),
    ("converse", "To answer a question or to talk, call converse."),
)
