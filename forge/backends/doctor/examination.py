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
from forge.backends.address import base_url
from forge.backends.credentials import secrets
from forge.backends.doctor.facts import IDENTIFY, NAMES, Facts, Finding, Probe, Question, Silence, constrains
from forge.backends.doctor.probes import CALLS, REPLY, WAYS
from forge.backends.profile import Profile, named_profile
from forge.backends.questions import ServerAnswer, exchange
from stages.wire.target import Mode
from stages.wire.wires import Constrain

# The profile that follows from the findings: the strongest mode that the server really enforces.


def choose(facts: Facts, known: Profile) -> Profile:
    """The server's profile: `known` is that of its kind, and findings take precedence.

    Constrained if the server obeys a schema; otherwise native if a correct call arrived as a call; otherwise prompted.
    What was not tested keeps its value from `known`. Pure.
    """
    tried: tuple[tuple[bool | None, Constrain], ...] = (
        (facts.schema, "format" if facts.kind == "ollama" else "json_schema"),
        (facts.strict, "strict"),
        (facts.object_schema, "json_object"),
        (facts.structured_outputs, "structured_outputs"),
        (facts.guided_json, "guided_json"),
    )
    untried = all(obeyed is None for obeyed, _ in tried)
    constrain = next((way for obeyed, way in tried if obeyed), known.constrain if untried else "none")
    if constrain != "none":
        mode: Mode = "constrained" if constrains(facts) else known.mode
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
        alternating=known.alternating if facts.template is not None else facts.alternating,
        tokenizer=known.tokenizer if facts.tokenizer is None else facts.tokenizer,
        logprobs=known.logprobs if facts.logprobs is None else facts.logprobs,
        context_tokens=known.context_tokens if told else facts.context_tokens or known.context_tokens,
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
    kept = _Kept(
        url=subject.url,
        model=subject.model,
        forge=VERSION,
        found=datetime.now(UTC),
        profile=profile,
    )
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


class Address(Struct, frozen=True, kw_only=True):
    """A server's address: `base` is the prefix of `/chat/completions`, `root` the same without `/v1`."""

    base: str
    root: str


def address(url: str) -> Address:
    """The address of a chat completions server. ForgeError for an invalid address."""
    whole = base_url(url, named_profile("openai-compatible"))
    return Address(base=whole, root=whole.removesuffix("/v1"))


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
    where: Address,
    probes: Sequence[Probe],
    facts: Facts | None = None,
    watch: ProbeWatch = unwatched,
    *,
    seconds: float = 60.0,
    waits: Sequence[float] = _WAITS,
    max_silent: int = _MAX_SILENT,
) -> Visit:
    """Run the probes one after the other, skipping those that make no sense. Never raises for what a server does.

    `seconds` is the maximum per answer; `waits` are the seconds between retries while the server is busy or loading.
    Stops after `max_silent` consecutive questions without an answer.
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
            answer = await _answer(client, where, question, seconds, waits)
            if isinstance(answer, Silence):
                silent += 1
                found = Finding(verdict="no" if answer.final else "unclear", came=answer.problem)
                known = replace(known, fatal=answer.problem) if answer.final else known
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
    client: httpx.AsyncClient, where: Address, question: Question, seconds: float, waits: Sequence[float]
) -> ServerAnswer | Silence:
    """The answer, retried while the server is busy; a broken connection is retried once."""
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
        why = str(error)
        help_ = "start the server there, or look at the host and the port"
        problem = f"cannot connect to {url} ({why}): {help_}"
        if "SSL" in why or "CERTIFICATE" in why.upper():
            help_ = "a server without TLS has an address that begins with http://"
            problem = f"no secure connection to {url} ({why}): {help_}"
        return Silence(problem=problem, final=True)
    except httpx.HTTPError as error:
        problem = f"the connection to {url} broke ({type(error).__name__}); look into the server's log"
        return Silence(problem=problem, broken=True)


# The short examination for `mode="auto"`: a few of the probes for an unknown server, once a week.

_log = logging.getLogger("forge")

_SECONDS = 60.0
"""Timeout of one answer; the server may have to load the model first."""


SHORT = (REPLY, *WAYS, replace(CALLS, ask=lambda facts: "" if constrains(facts) else CALLS.ask(facts)))
"""The probes that decide the mode: two questions for a server that obeys a schema, up to seven otherwise."""


async def consulted(client: httpx.AsyncClient, base: str, subject: Subject) -> tuple[Profile, str]:
    """The profile of the server at `base`, cached or found by probing, and its origin in words.

    A server that cannot be probed gets the profile of an unknown one; what is wrong with it then shows in the run.
    Never raises for what a server does.
    """
    if kept := recall(subject):
        return kept, "as found earlier"
    most = sum(probe.tokens for probe in SHORT)
    _log.info("%s is not known: it is asked at most %d questions, of at most %d tokens", base, len(SHORT), most)
    where = address(base)
    visit = await examine(client, where, IDENTIFY, Facts(model=subject.model), seconds=_SECONDS, waits=(), max_silent=1)
    if visit.facts.kind == "openai-compatible":
        visit = await examine(client, where, SHORT, visit.facts, seconds=_SECONDS, waits=(), max_silent=1)
    profile = named_profile(visit.facts.kind)
    if visit.facts.fatal:
        _log.warning("%s could not be asked what it can do: %s", base, visit.facts.fatal)
        return profile, f"could not be asked: {visit.facts.fatal}"
    chosen = choose(visit.facts, profile)
    remember(subject, chosen)
    if visit.facts.kind == "openai-compatible":
        return chosen, f"asked just now: {reason(visit.facts, chosen)}"
    return chosen, f"recognised as {NAMES[visit.facts.kind]}: {visit.facts.known_by}"
