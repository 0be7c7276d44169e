"""What `mode="auto"` asks of a server that forge does not know: a few of the doctor's questions, once a week."""

import logging

import httpx
from msgspec import Struct
from msgspec.structs import replace

from forge.backends.doctor.basics import REPLY
from forge.backends.doctor.choice import choose, reason
from forge.backends.doctor.constraints import WAYS
from forge.backends.doctor.examination import address, examine
from forge.backends.doctor.facts import Facts, Question, constrains
from forge.backends.doctor.identification import IDENTIFY
from forge.backends.doctor.identity_findings import NAMES
from forge.backends.doctor.profile_cache import Subject, recall, remember
from forge.backends.doctor.toolcalls import CALLS
from forge.backends.profile import Profile, named_profile

_log = logging.getLogger("forge")

_SECONDS = 60.0
"""Time-out of one answer; the model may have to be loaded first."""


def _ask_calls(facts: Facts) -> Question | str:
    return "" if constrains(facts) else CALLS.ask(facts)


SHORT = (REPLY, *WAYS, replace(CALLS, ask=_ask_calls))
"""The probes that decide the mode: a server that obeys a schema gets two questions, one that obeys nothing seven."""


class Consulted(Struct, frozen=True, kw_only=True):
    """The profile of a server, and how forge came to it, in a sentence."""

    profile: Profile
    because: str


async def consulted(client: httpx.AsyncClient, base: str, subject: Subject) -> Consulted:
    """The profile of the server at `base`: as it was found within the last week, else by asking.

    A server that cannot be asked gets the profile of one that nothing is known of; what is wrong with it then shows
    in the run. Raises nothing for what a server does.
    """
    if kept := recall(subject):
        return Consulted(profile=kept, because="as found earlier")
    most = sum(probe.tokens for probe in SHORT)
    _log.info("%s is not known: it is asked at most %d questions, of at most %d tokens", base, len(SHORT), most)
    where = address(base)
    visit = await examine(client, where, IDENTIFY, Facts(model=subject.model), seconds=_SECONDS, waits=(), max_silent=1)
    if visit.facts.kind == "openai-compatible":
        visit = await examine(client, where, SHORT, visit.facts, seconds=_SECONDS, waits=(), max_silent=1)
    profile = named_profile(visit.facts.kind)
    if visit.facts.fatal:
        _log.warning("%s could not be asked what it can do: %s", base, visit.facts.fatal)
        return Consulted(profile=profile, because=f"could not be asked: {visit.facts.fatal}")
    chosen = choose(visit.facts, profile)
    remember(subject, chosen)
    if visit.facts.kind == "openai-compatible":
        return Consulted(profile=chosen, because=f"asked just now: {reason(visit.facts, chosen)}")
    return Consulted(profile=chosen, because=f"recognised as {NAMES[visit.facts.kind]}: {visit.facts.known_by}")
