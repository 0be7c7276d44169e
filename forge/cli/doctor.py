"""`forge doctor`: examine a server, show each finding as it comes, write the profile."""

import argparse
import asyncio
from functools import partial
from pathlib import Path
from typing import assert_never

from msgspec import Struct
from msgspec.structs import replace
from rich.status import Status
from rich.text import Text

from forge.backends.credentials import headers_for
from forge.backends.doctor import PROBES, Finding, Probe, Visit, consult, profile_of, reason
from forge.backends.doctor.facts import FindingVerdict
from forge.backends.http_client import new_client
from forge.backends.profile import Profile, base_url, named_profile, to_toml
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


def run_doctor(options: argparse.Namespace) -> int:
    """Examine a server; 0: it can be used, 1: it cannot."""
    console = Console(stderr=options.json)
    base = base_url(options.url, named_profile("openai-compatible"))
    refuse_unwritable("--write", options.write)
    kind = addressed(base) or named_profile("openai-compatible")
    headers = headers_for(base, kind, key_of(options.api_key_env), {})
    asked = [probe for probe in PROBES if probe.tokens]
    plan = (
        f"{base}: at most {len(asked)} short requests to the model, one at a time, with at most "
        f"{sum(probe.tokens for probe in asked)} reply tokens in total (more for a reasoning model). Nothing is "
        "changed on the server."
    )
    console.say(plan)

    async def visit() -> Visit:
        with console.status(Text("")) as status:
            async with new_client(base, headers=headers, timeout=options.timeout) as http:
                view = partial(_show, console, status)
                return await consult(http, base, options.model, view, seconds=options.timeout)

    found = asyncio.run(visit())
    problem = found.facts.fatal
    profile = None if problem else profile_of(found)
    if profile:
        url = base.removesuffix("/v1") if WIRES[profile.wire].at_root else base
        profile = replace(profile, url=url, key_env=options.api_key_env or profile.key_env)
    report = _Report(
        url=base,
        model=found.facts.model,
        usable=not problem,
        problem=problem,
        reason=reason(found.facts, profile) if profile else "",
        findings=found.findings,
        profile=profile,
    )
    if options.json:
        print_json(report, indented=True)
    return _tell(report, options.write, console)


def _show(console: Console, status: Status, told: Probe | Finding) -> None:
    """Show the current question beside the spinner, or a finding."""
    match told:
        case Probe():
            status.update(Text(f"{told.topic}: {told.asks} …", style="dim"))
        case Finding():
            verdict = (f"{told.verdict:>8}  ", _STYLES[told.verdict])
            line = Text.assemble(verdict, (f"{told.topic}: ", "bold"), printable(told.came))
            console.say(line)
            forge = f"forge {told.does}" if told.does else ""
            if rest := "; ".join(filter(None, (printable(told.means), printable(forge)))):
                console.say(f"{'':10}{rest}", "dim")
        case _:
            assert_never(told)


def _tell(report: _Report, write: Path | None, console: Console) -> int:
    """Show the report's end, and write its profile."""
    if report.profile is None:
        shown = {said for found in report.findings[-1:] for said in (found.came, found.means)}
        console.say("\nnot usable" + ("" if report.problem in shown else f": {printable(report.problem)}"), "bold red")
        return 1
    console.say(f"\nmode {report.reason}", "bold")
    profile = to_toml(report.profile)
    if not console.stderr:
        console.say(f"\n{profile}")
    if write is not None:
        try:
            write.write_text(profile, encoding="utf-8")
        except OSError as error:
            raise ForgeError(f"the profile cannot be written to {write}: {error.strerror}") from None
        console.say(f"written to {write}", "dim")
    return 0
