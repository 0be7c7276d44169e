"""The sender of a backend over HTTP: masks credentials that come back, recognises a refusal of tools."""

import logging
from functools import partial

import httpx
from msgspec.structs import replace

from forge.interpreters.http import TOTAL, Http
from forge.masking import Hidden, masked_fault, masked_reply
from stages.effect import Fault
from stages.retry import RetryPolicy
from stages.wire.wires import Wire

_log = logging.getLogger("forge")

_WRONG_MODEL = (400, 404, 422)
"""Statuses with which servers refuse a request without the name of a model."""


def sender(
    client: httpx.AsyncClient,
    base: str,
    retry: RetryPolicy | None,
    spoken: Wire,
    *,
    hidden: Hidden,
    keys: Hidden,
    refusals: tuple[str, ...] = (),
    total: float | None = TOTAL,
    transport: httpx.AsyncBaseTransport | None = None,
    model: str,
) -> Http:
    """The interpreter of `Send`. A server's refusal of tools becomes a fault of the kind `no_tools`.

    `hidden` is masked in errors, `keys` in replies. `model` is what requests name; where that is empty, a
    refusal says how to name one.
    """

    def translate(fault: Fault) -> Fault:
        shown = masked_fault(fault, hidden)
        if not model and fault.status in _WRONG_MODEL:
            shown = replace(shown, detail=f"{shown.detail}. {unnamed}")
        if not refuses_tools(shown, refusals):
            return shown
        _log.warning("refused, so the tools are written into the prompt from now on: %s", shown.detail)
        return replace(shown, kind="no_tools")

    unnamed = f"The server at {base} lists no models, so none was named; give model=…, on the command line --model NAME"
    return Http(
        client,
        base,
        retry,
        spoken,
        total=total,
        hidden=hidden,
        translate=translate,
        clean=partial(masked_reply, hidden=keys),
        transport=transport,
    )


def refuses_tools(fault: Fault, refusals: tuple[str, ...]) -> bool:
    """Whether the fault is the server's refusal of tools or of their schema, by the words that its profile knows."""
    said = fault.body.lower()
    return fault.kind in {"status", "reported"} and any(words.lower() in said for words in refusals)
