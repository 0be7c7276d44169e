"""The examination of a server: the order of the probes, the mode that follows, and the cached profile."""

import asyncio
import hashlib
import logging
import os
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx
import msgspec
from msgspec import Struct
from msgspec.structs import replace
from platformdirs import user_cache_path

from forge._installation import VERSION
from forge.backends.credentials import secrets
from forge.backends.doctor.facts import SERVER_NAMES, Facts, Finding, Probe, ProbeRequest
from forge.backends.doctor.probes import CALLS, REPLY, WAYS
from forge.backends.profile import Profile, named_profile
from forge.backends.questions import ServerAnswer, exchange
from forge.backends.recognition import About, identify, kind_of
from forge.interpreters.http import fault_of
from stages.effect import Fault
from stages.wire.target import Mode

# The profile that follows from the findings: the strongest mode that the server really enforces.


def choose(facts: Facts, known: Profile) -> Profile:
    """The server's profile: `known` is that of its kind, and findings take precedence.

    Constrained if the server obeys a schema; otherwise native if a correct call arrived as a call; otherwise prompted.
    What was not tested keeps its value from `known`. Pure.
    """
    untried = all(obeyed is None for obeyed in facts.enforced.values())
    obeyed = next((way for way, obeyed in facts.enforced.items() if obeyed), None)
    constrain = obeyed or (known.constrain if untried else "none")
    if constrain != "none":
        mode: Mode = "constrained" if obeyed else known.mode
    elif facts.calls is None:
        mode = "native" if known.mode == "constrained" and known.native_calls else known.mode
    else:
        mode = "native" if facts.calls == "native" and facts.valid_arguments else "prompted"
    native = known.native_calls if facts.calls is None else facts.calls not in {"refused", "ignored"}
    choice = known.tool_choice
    if facts.required is not None or facts.named is not None:
        # Forcing a tool by name alone is no use: with several legal tools, forge requires a call of any.
        choice = "none" if not facts.required else "named" if facts.named else "required"
    told = known.context in {"props", "show"}
    return replace(
        known,
        mode=mode,
        constrain=constrain,
        native_calls=native,
        tool_choice=choice if native else "none",
        # A visible template says more than one refusal: it is examined at each connection.
        alternating=known.alternating if facts.about.template is not None else facts.alternating,
        tokenizer=known.tokenizer if facts.tokenizer is None else facts.tokenizer,
        logprobs=known.logprobs if facts.logprobs is None else facts.logprobs,
        context_tokens=known.context_tokens if told else facts.context.tokens or known.context_tokens,
    )


def reason(facts: Facts, chosen: Profile) -> str:
    """Why this mode was chosen, in a sentence."""
    match chosen.mode:
        case "constrained":
            return "constrained: the server keeps replies to the schema of the calls that are legal"
        case "native":
            return "native: no schema is enforced, and its own tool calls came, with right arguments"
        case "prompted":
            why = {
                "text": "calls come as text",
                "unused": "no native call came",
                "ignored": "tools are ignored",
                "refused": "tools are refused",
                "native": "native calls came with wrong arguments",
                None: "native calls were not tried",
            }
            return f"prompted: no schema is enforced, and {why[facts.calls]}"


# Profiles found by probes, cached for a week so that a server is not probed before every run.

FRESH = timedelta(days=7)
"""How long a cached profile is valid; the server behind an address may change."""


class Subject(Struct, frozen=True, kw_only=True):
    """The key of a cached profile. `build` is what the server reports about itself on connecting."""

    url: str
    model: str
    build: str = ""


class _Kept(Struct, kw_only=True, forbid_unknown_fields=True):
    url: str
    model: str
    forge: str
    found: datetime
    profile: Profile


def folder() -> Path:
    """The cache folder for profiles; deleting it makes forge probe again."""
    return user_cache_path("forge") / "profiles"


def recall(subject: Subject) -> Profile | None:
    """The cached profile for this subject; None if there is none, it is too old, or from another version of forge."""
    try:
        kept = msgspec.json.decode(_file(subject).read_bytes(), type=_Kept)
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:  # msgspec's errors are ValueErrors
        logging.getLogger("forge").warning("%s cannot be read (%s); the server is asked again", _file(subject), error)
        return None
    fresh = timedelta() <= datetime.now(UTC) - kept.found < FRESH
    return kept.profile if fresh and kept.forge == VERSION else None


def remember(subject: Subject, profile: Profile) -> None:
    """Cache the profile. If the folder is not writable, this is logged, and forge will probe again."""
    # For people: the name of the file does not say of which server it is.
    kept = _Kept(url=subject.url, model=subject.model, forge=VERSION, found=datetime.now(UTC), profile=profile)
    file = _file(subject)
    part = file.with_suffix(f".{os.getpid()}.part")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        part.write_bytes(msgspec.json.format(msgspec.json.encode(kept)))
        part.replace(file)
    except OSError as error:
        logging.getLogger("forge").warning("the profile cannot be kept in %s: %s", file, error)


def _file(subject: Subject) -> Path:
    return folder() / f"{hashlib.sha256(msgspec.json.encode(subject)).hexdigest()[:32]}.json"


# Send each probe's question over HTTP, and collect the findings.

_BUSY = (429, 503)
"""Statuses after which to retry."""

_WAITS = (0.5, 1.0, 2.0, 4.0)
"""Seconds between retries while the server is busy or loading."""

_MAX_SILENT = 2
"""Maximum number of consecutive questions without an answer; then no more are asked."""


class Visit(Struct, frozen=True, kw_only=True):
    """The result of an examination: the facts, and the findings behind them in the order of the probes."""

    facts: Facts
    findings: tuple[Finding, ...]


ProbeWatch = Callable[[Probe | Finding], None]
"""Called with each probe before its question is sent, and with each finding."""


def unwatched(_: Probe | Finding) -> None:
    """Ignore the event."""


async def examine(
    client: httpx.AsyncClient,
    base: str,
    probes: Sequence[Probe],
    facts: Facts | None = None,
    watch: ProbeWatch = unwatched,
    *,
    seconds: float = 60.0,
    waits: Sequence[float] = _WAITS,
    max_silent: int = _MAX_SILENT,
) -> Visit:
    """Ask the server at `base` the probes one after the other, skipping those that make no sense.

    Never raises for what a server does. `seconds` is the maximum per answer; `waits` are the seconds between retries
    while the server is busy or loading. Stops after `max_silent` consecutive questions without an answer.
    """
    known, findings, silent = facts or Facts(), [], 0
    for probe in probes:
        if known.fatal:
            break
        question = probe.ask(known)
        if isinstance(question, str):
            found: Finding | None = Finding(verdict="skipped", came=question) if question else None
        else:
            watch(probe)
            answer = await _answer(client, base, question, seconds, waits)
            if isinstance(answer, Fault):
                silent += 1
                final = answer.kind in {"unreachable", "tls"}
                found = Finding(verdict="no" if final else "unclear", came=answer.detail)
                known = replace(known, fatal=answer.detail) if final else known
            else:
                silent = 0
                known, found = probe.read(known, answer)
        if silent == max_silent:
            known = replace(known, fatal="it stopped answering: look into its log, or give it more time with --timeout")
        if found is not None:
            findings.append(replace(found, topic=probe.topic, asked=probe.asks))
            watch(findings[-1])
    return Visit(facts=known, findings=tuple(findings))


async def _answer(
    client: httpx.AsyncClient, base: str, question: ProbeRequest, seconds: float, waits: Sequence[float]
) -> ServerAnswer | Fault:
    """The answer, retried while the server is busy; a broken connection is retried once."""
    answer = await _once(client, base, question, seconds)
    if isinstance(answer, Fault) and answer.kind == "interrupted":  # perhaps because it was kept open too long
        answer = await _once(client, base, question, seconds)
    for wait in waits:
        if isinstance(answer, Fault) or answer.status not in _BUSY:
            return answer
        await asyncio.sleep(wait)
        answer = await _once(client, base, question, seconds)
    return answer


async def _once(client: httpx.AsyncClient, base: str, question: ProbeRequest, seconds: float) -> ServerAnswer | Fault:
    url = (base.removesuffix("/v1") if question.root else base) + question.path
    hidden = secrets(client.headers, named_profile("openai-compatible"))
    try:
        return await exchange(client, url, question.body, seconds=seconds, hidden=hidden)
    except (httpx.HTTPError, TimeoutError) as error:
        return fault_of(error, url, seconds)


# The short examination for `mode="auto"`: a few of the probes for an unknown server, once a week.

_log = logging.getLogger("forge")

_SECONDS = 60.0
"""Timeout of one answer; the server may have to load the model first."""


SHORT = (REPLY, *WAYS, replace(CALLS, ask=lambda facts: "" if facts.constrains else CALLS.ask(facts)))
"""The probes that decide the mode: two questions for a server that obeys a schema, up to five otherwise."""


async def consulted(client: httpx.AsyncClient, base: str, subject: Subject, about: About) -> tuple[Profile, str]:
    """The profile of the server at `base`, cached or found by probing, and its origin in words.

    `about` is what it has reported already. A server that cannot be probed gets the profile of an unknown one; what is
    wrong with it then shows in the run. Never raises for what a server does.
    """
    if kept := recall(subject):
        return kept, "as found earlier"
    most = sum(probe.tokens for probe in SHORT)
    _log.info("%s is not known: it is asked at most %d questions, of at most %d tokens", base, len(SHORT), most)
    about = await identify(client, base, subject.model, about)
    kind, known_by = kind_of(about, subject.model)
    facts, profile = Facts(about=about, kind=kind, model=subject.model), named_profile(kind)
    if kind == "openai-compatible":
        facts = (await examine(client, base, SHORT, facts, seconds=_SECONDS, waits=(), max_silent=1)).facts
    if facts.fatal:
        _log.warning("%s could not be asked what it can do: %s", base, facts.fatal)
        return profile, f"could not be asked: {facts.fatal}"
    chosen = choose(facts, profile)
    remember(subject, chosen)
    if kind == "openai-compatible":
        return chosen, f"asked just now: {reason(facts, chosen)}"
    return chosen, f"recognised as {SERVER_NAMES[kind]}: {known_by}"
