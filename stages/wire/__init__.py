"""Wires: how a conversation is written for a server and how its answer is read, side by side.

`openai` is the chat completions protocol, `ollama` and `anthropic` are those servers' own. `prompted` writes tools
and calls as text, in a form of JSON or of XML, for models or servers without tool calls of their own; `constrained`
adds the JSON Schema of the calls that are legal now. `valid` makes any history one that strict servers take.

Forge as a server: `server_wires` has the protocols that clients speak to it, `served` the noun of a request, `answers`
what an answer needs beside the reply. In each protocol's package its own side stands beside the client's.
"""

from typing import TYPE_CHECKING

from stages._later import later

if TYPE_CHECKING:
    from stages.wire.deltas import (
        CallDelta,
        CallStarted,
        Decoder,
        Delta,
        Ended,
        Piece,
        ReasoningDelta,
        Reclassified,
        Retry,
        Sampling,
        TextDelta,
        gather_reply,
        reply_pieces,
    )
    from stages.wire.target import Mode, Target
    from stages.wire.wires import ANTHROPIC, OLLAMA, OPENAI, Dialect, Wire, wire

__all__ = [
    "ANTHROPIC",
    "OLLAMA",
    "OPENAI",
    "CallDelta",
    "CallStarted",
    "Decoder",
    "Delta",
    "Dialect",
    "Ended",
    "Mode",
    "Piece",
    "ReasoningDelta",
    "Reclassified",
    "Retry",
    "Sampling",
    "Target",
    "TextDelta",
    "Wire",
    "gather_reply",
    "reply_pieces",
    "wire",
]

__getattr__ = later(
    __name__,
    {
        "stages.wire.deltas": (
            "CallDelta",
            "CallStarted",
            "Decoder",
            "Delta",
            "Ended",
            "Piece",
            "ReasoningDelta",
            "Reclassified",
            "Retry",
            "Sampling",
            "TextDelta",
            "gather_reply",
            "reply_pieces",
        ),
        "stages.wire.target": ("Mode", "Target"),
        "stages.wire.wires": (
            "ANTHROPIC",
            "Dialect",
            "OLLAMA",
            "OPENAI",
            "Wire",
            "wire",
        ),
    },
)
