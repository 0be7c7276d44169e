"""The shared bench's rescue suite with forge's rescue; `texts` is the bench's own."""

from texts import TEXTS

from stages.rescue import rescue

NAMES = ("search", "fetch", "compute", "finish")


def make(case: dict[str, str]) -> dict[str, object]:
    """By the name of what is measured: a call of it."""
    text: str = TEXTS[case["text"]]
    return {"forge_new: rescue": lambda: rescue(text, NAMES)}
