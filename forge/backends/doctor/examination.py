"""Ask each probe's question over HTTP, and collect what was found."""

import asyncio
from collections.abc import Callable, Sequence
from typing import assert_never

import httpx
from msgspec import Struct
from msgspec.structs import replace

from forge.backends.address import base_url
from forge.backends.credentials import secrets
from forge.backends.doctor.facts import Facts, Finding, Probe, Question, Silence
from forge.backends.profile import named_profile
from forge.backends.questions import ServerAnswer, exchange

_BUSY = (429, 503)
"""Statuses after which to retry."""

_WAITS = (0.5, 1.0, 2.0, 4.0)
"""Seconds between retries while the server is busy or loading."""

_MAX_SILENT = 2
"""Maximum number of consecutive questions without an answer; then no more are asked."""


class Address(Struct, frozen=True, kw_only=True):
    """Where a server is: `base` is what `/chat/completions` stands below, `root` the same without `/v1`."""

    base: str
    root: str


def address(url: str) -> Address:
    """The address of a server of the chat completions protocol. ForgeError for what is no address."""
    whole = base_url(url, named_profile("openai-compatible"))
    return Address(base=whole, root=whole.removesuffix("/v1"))


class Visit(Struct, frozen=True, kw_only=True):
    """What the doctor found: the facts, and the findings that they come from, in the order of the questions."""

    facts: Facts
    findings: tuple[Finding, ...]


ProbeWatch = Callable[[Probe | Finding], None]
"""Told of each probe before its question is asked, and of each finding."""


def unwatched(_: Probe | Finding) -> None:
    """Watch nothing."""


async def examine(
    client: httpx.AsyncClient,
    where: Address,
    probes: Sequence[Probe],
    facts: Facts | None = None,
    watch: ProbeWatch = unwatched,
    *,
    seconds: float = 60.0,
    waits: Sequence[float] = _WAITS,
    max_silent: int = _MAX_SILENT,
) -> Visit:
    """Ask the probes' questions, one after the other, as far as they make sense. Never raises for what a server does.

    `seconds` bound each answer; `waits` are the seconds between the tries while the server is busy or loading. After
    `max_silent` questions in a row without an answer no more are asked.
    """
    known, findings, silent = facts or Facts(), [], 0
    for probe in probes:
        if known.fatal:
            break
        question = probe.ask(known)
        if isinstance(question, str):
            found: Finding | None = Finding(topic=probe.topic, verdict="skipped", came=question) if question else None
        else:
            watch(probe)
            answer = await _answer(client, where, question, seconds, waits)
            known, found = _judged(probe, known, answer)
            silent = silent + 1 if isinstance(answer, Silence) else 0
        if silent == max_silent:
            known = replace(known, fatal="it stopped answering: look into its log, or give it more time with --timeout")
        if found is not None:
            findings.append(replace(found, asked=probe.asks))
            watch(findings[-1])
    return Visit(facts=known, findings=tuple(findings))


def _judged(probe: Probe, facts: Facts, answer: ServerAnswer | Silence) -> tuple[Facts, Finding | None]:
    match answer:
        case ServerAnswer():
            return probe.read(facts, answer)
        case Silence(problem=problem, final=final):
            finding = Finding(topic=probe.topic, verdict="no" if final else "unclear", came=problem)
            return (replace(facts, fatal=problem) if final else facts), finding
        case _:
            assert_never(answer)


async def _answer(
    client: httpx.AsyncClient, where: Address, question: Question, seconds: float, waits: Sequence[float]
) -> ServerAnswer | Silence:
    """What comes, once the server is not busy any more, or the waiting is over; what breaks is asked once more."""
    answer = await _once(client, where, question, seconds)
    if isinstance(answer, Silence) and answer.broken:
        answer = await _once(client, where, question, seconds)
    for wait in waits:
        if isinstance(answer, Silence) or answer.status not in _BUSY:
            return answer
        await asyncio.sleep(wait)
        answer = await _once(client, where, question, seconds)
    return answer


async def _once(
    client: httpx.AsyncClient, where: Address, question: Question, seconds: float
) -> ServerAnswer | Silence:
    url = (where.root if question.root else where.base) + question.path
    hidden = secrets(client.headers, named_profile("openai-compatible"))
    try:
        return await exchange(client, url, question.body, seconds=seconds, hidden=hidden)
    except (TimeoutError, httpx.TimeoutException):
        return Silence(problem=f"no answer from {url} within {seconds:g} s: it may be stuck, or need more --timeout")
    except (httpx.ConnectError, httpx.ProxyError) as error:
        return Silence(problem=_unreachable(url, str(error)), final=True)
    except httpx.HTTPError as error:
        problem = f"the connection to {url} broke ({type(error).__name__}); look into the server's log"
        return Silence(problem=problem, broken=True)


def _unreachable(url: str, reason: str) -> str:
    if "SSL" in reason or "CERTIFICATE" in reason.upper():
        return f"no secure connection to {url} ({reason}): a server without TLS has an address that begins with http://"
    return f"cannot connect to {url} ({reason}): start the server there, or look at the host and the port"
