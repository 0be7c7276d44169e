"""The shared bench's token suite with the count that forge keeps of a message: characters, all that is sent of it."""

from stages.message import Tool, size

TEXT = "The quick brown fox jumps over the lazy dog near the river bank; item 17 costs $4.20 (net).\n"


def make(case: dict[str, int]) -> dict[str, object]:
    """By the name of what is measured: a call of it."""
    length = case["chars"]
    message = Tool(call_id="call_000000001", name="search", text=(TEXT * (length // len(TEXT) + 1))[:length])
    return {"forge_new: size of a message": lambda: size(message)}
