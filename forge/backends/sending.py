"""Sending over HTTP for a backend: credentials that come back in an error are hidden, refused tools are told of."""

import logging

from msgspec.structs import replace

from forge.backends.credentials import scrubbed
from forge.interpreters.http import Http
from stages.effect import Fault, Replied, Send, Undelivered

log = logging.getLogger("forge")


class Sending:
    """The interpreter of `Send`: hides credentials that a server repeats in its errors, tells when it refuses tools."""

    def __init__(self, http: Http, hidden: tuple[str, ...], refusals: tuple[str, ...]) -> None:
        self._http = http
        self._hidden = hidden
        self._refusals = refusals

    async def __call__(self, effect: Send) -> Replied | Undelivered:
        outcome = scrubbed(await self._http(effect), self._hidden)
        if not isinstance(outcome, Undelivered) or not refuses_tools(outcome.fault, self._refusals):
            return outcome
        log.warning("refused, so the tools are written into the prompt from now on: %s", outcome.fault.detail)
        return replace(outcome, fault=replace(outcome.fault, kind="no_tools"))


def refuses_tools(fault: Fault, refusals: tuple[str, ...]) -> bool:
    """Whether the fault is the server's refusal of tools or of their schema, by the words that its profile knows."""
    refused = fault.kind == "status" and fault.status is not None and 400 <= fault.status < 600
    said = fault.body.lower()
    return refused and any(words.lower() in said for words in refusals)
