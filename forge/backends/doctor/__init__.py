"""The doctor: tests what a server supports, and derives a profile."""

import httpx

from forge.backends.doctor.examination import Address, ProbeWatch, Visit, address, choose, examine, reason, unwatched
from forge.backends.doctor.facts import IDENTIFY, Facts, Finding, Probe, about
from forge.backends.doctor.probes import BASICS, LIMITS, TOOLCALLS, WAYS
from forge.backends.profile import Profile, named_profile
from forge.backends.recognition import SERVER_KINDS, addressed
from forge.backends.template import examined
from forge.errors import ForgeError

__all__ = [
    "PROBES",
    "Address",
    "Facts",
    "Finding",
    "Probe",
    "ProbeWatch",
    "Visit",
    "address",
    "choose",
    "consult",
    "profile_of",
    "reason",
]

PROBES = (*BASICS, *TOOLCALLS, *WAYS, *LIMITS)
"""Probes of the model, in order, after IDENTIFY."""


async def consult(
    client: httpx.AsyncClient, where: Address, model: str = "", watch: ProbeWatch = unwatched, *, seconds: float = 60.0
) -> Visit:
    """Examine a server and one of its models: the named one, or the first that it lists."""
    first = await examine(client, where, IDENTIFY, known(where, model), watch, seconds=seconds)
    if first.facts.fatal:
        return first
    seen = await examined(client, where.root, first.facts.model, first.facts.template or "")
    told = tuple(about(first.facts, seen))
    for finding in told:
        watch(finding)
    rest = await examine(client, where, PROBES, first.facts, watch, seconds=seconds)
    return Visit(facts=rest.facts, findings=(*first.findings, *told, *rest.findings))


def known(where: Address, model: str) -> Facts:
    """The facts that follow from the address alone. ForgeError for Anthropic's, which speaks another protocol."""
    profile = addressed(where.base)
    if profile is None:
        return Facts(model=model)
    kind = next((kind for kind in SERVER_KINDS if kind == profile.name), None)
    if kind is None:
        raise ForgeError(f"the doctor asks servers of the chat completions protocol; run with {profile.name}:MODEL")
    return Facts(kind=kind, known_by="that is its address", model=model)


def profile_of(visit: Visit) -> Profile:
    """The profile that follows from a visit."""
    return choose(visit.facts, named_profile(visit.facts.kind))
