"""`forge doctor`: examine a server, show each finding as it comes, write the profile."""

import argparse
import asyncio
from pathlib import Path
from typing import Self, assert_never

from msgspec import Struct
from msgspec.structs import replace
from rich.text import Text

from forge.backends.address import base_url
from forge.backends.credentials import headers_for
from forge.backends.doctor import PROBES, Finding, Probe, Visit, consult, profile_of, reason
from forge.backends.doctor.facts import FindingVerdict
from forge.backends.http_client import client
from forge.backends.profile import Profile, named_profile, to_toml
from forge.backends.recognition import addressed
from forge.cli.console import Console, print_json, printable
from forge.cli.options import key_of, refuse_unwritable
from forge.errors import ForgeError
from stages.wire.wires import WIRES

_STYLES: dict[FindingVerdict, str] = {"yes": "green", "no": "red", "unclear": "yellow", "skipped": "dim"}


class _Report(Struct, frozen=True, kw_only=True):
    """What `--json` prints. `profile` is None if the server cannot be used; `problem` then says why."""

    url: str
    model: str
    usable: bool
    problem: str
    reason: str
    findings: tuple[Finding, ...]
    profile: Profile | None

    @classmethod
    def of(cls, visit: Visit, base: str, key_env: str) -> Self:
        """The report on a visit. The profile is for that address and the key in that environment variable."""
        problem = visit.facts.fatal
        profile = None if problem else profile_of(visit)
        if profile:
            url = base.removesuffix("/v1") if WIRES[profile.wire].at_root else base
            profile = replace(profile, url=url, key_env=key_env or profile.key_env)
        return cls(
            url=base,
            model=visit.facts.model,
            usable=not problem,
            problem=problem,
            reason=reason(visit.facts, profile) if profile else "",
            findings=visit.findings,
            profile=profile,
        )


def run_doctor(options: argparse.Namespace) -> int:
    """Examine a server; 0: it can be used, 1: it cannot."""
    console = Console(stderr=options.json)
    base = base_url(options.url, named_profile("openai-compatible"))
    refuse_unwritable("--write", options.write)
    kind = addressed(base) or named_profile("openai-compatible")
    headers = headers_for(base, kind, key_of(options.api_key_env, "--api-key-env"), {})
    asked = [probe for probe in PROBES if probe.tokens]
    plan = (
        f"{base}: at most {len(asked)} short requests to the model, one at a time, with at most "
        f"{sum(probe.tokens for probe in asked)} reply tokens in total (more for a reasoning model). Nothing is "
        "changed on the server."
    )
    console.say(plan)
    view = _FindingsView(console)

    async def visit() -> Visit:
        async with client(base, headers=headers, timeout=options.timeout) as http:
            return await consult(http, base, options.model, view, seconds=options.timeout)

    try:
        found = asyncio.run(visit())
    finally:
        view.stop()
    return _tell(_Report.of(found, base, options.api_key_env or ""), options.write, console)


class _FindingsView:
    """Prints each finding as it comes, and in a terminal the current question."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._status = console.status(Text(""))

    def __call__(self, told: Probe | Finding) -> None:
        """Show a question or a finding."""
        match told:
            case Probe():
                self._status.update(Text(f"{told.topic}: {told.asks} …", style="dim"))
                if self._console.is_terminal:
                    self._status.start()
            case Finding():
                verdict = (f"{told.verdict:>8}  ", _STYLES[told.verdict])
                line = Text.assemble(verdict, (f"{told.topic}: ", "bold"), printable(told.came))
                self._console.say(line)
                forge = f"forge {told.does}" if told.does else ""
                if rest := "; ".join(filter(None, (printable(told.means), printable(forge)))):
                    self._console.say(f"{'':10}{rest}", "dim")
            case _:
                assert_never(told)

    def stop(self) -> None:
        """Remove the current question from the terminal."""
        self._status.stop()


def _tell(told: _Report, write: Path | None, console: Console) -> int:
    if console.stderr:
        print_json(told, indented=True)
    if told.profile is None:
        shown = {said for found in told.findings[-1:] for said in (found.came, found.means)}
        console.say("\nnot usable" + ("" if told.problem in shown else f": {printable(told.problem)}"), "bold red")
        return 1
    console.say(f"\nmode {told.reason}", "bold")
    if not console.stderr:
        console.say(f"\n{to_toml(told.profile)}")
    if write is not None:
        try:
            write.write_text(to_toml(told.profile), encoding="utf-8")
        except OSError as error:
            raise ForgeError(f"the profile cannot be written to {write}: {error.strerror}") from None
        console.say(f"written to {write}", "dim")
    return 0
