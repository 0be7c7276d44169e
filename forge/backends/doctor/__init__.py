"""The doctor: tests what a server supports, and derives a profile."""

import httpx
from msgspec.structs import replace

from forge.backends.doctor.examination import ProbeWatch, Visit, choose, examine, reason, unwatched
from forge.backends.doctor.facts import MODELS, Facts, Finding, Probe, about
from forge.backends.doctor.probes import BASICS, LIMITS, TOOLCALLS, WAYS
from forge.backends.profile import Profile, base_url, named_profile
from forge.backends.recognition import SERVER_KINDS, addressed, identify, kind_of
from forge.backends.template import examined
from forge.errors import ForgeError

__all__ = [
    "PROBES",
    "Facts",
    "Finding",
    "Probe",
    "ProbeWatch",
    "Visit",
    "choose",
    "consult",
    "profile_of",
    "reason",
]

PROBES = (*BASICS, *TOOLCALLS, *WAYS, *LIMITS)
"""Probes of the model, in order, after MODELS."""


async def consult(
    client: httpx.AsyncClient, url: str, model: str = "", watch: ProbeWatch = unwatched, *, seconds: float = 60.0
) -> Visit:
    """Examine a server and one of its models: the named one, or the first that it lists. ForgeError for a wrong url."""
    base = base_url(url, named_profile("openai-compatible"))
    first = await examine(client, base, (MODELS,), known(base, model), watch, seconds=seconds)
    facts = first.facts
    if facts.fatal:
        return first
    if facts.kind != "openai":
        said = await identify(client, base, facts.model, facts.about, seconds=min(seconds, 10.0))
        facts = replace(facts, about=said, kind=kind_of(said, facts.model)[0])
    seen = await examined(client, base.removesuffix("/v1"), facts.model, facts.about.template or "")
    told = tuple(about(facts, seen))
    for finding in told:
        watch(finding)
    rest = await examine(client, base, PROBES, facts, watch, seconds=seconds)
    return Visit(facts=rest.facts, findings=(*first.findings, *told, *rest.findings))


def known(base: str, model: str) -> Facts:
    """The facts that follow from the address alone. ForgeError for Anthropic's, which speaks another protocol."""
    profile = addressed(base)
    if profile is None:
        return Facts(model=model)
    kind = next((kind for kind in SERVER_KINDS if kind == profile.name), None)
    if kind is None:
        raise ForgeError(f"the doctor asks servers of the chat completions protocol; run with {profile.name}:MODEL")
    return Facts(kind=kind, model=model)


def profile_of(visit: Visit) -> Profile:
    """The profile that follows from a visit."""
    return choose(visit.facts, named_profile(visit.facts.kind))
