"""`python -m benchmarks.results`: measure forge beside its peers, and write RESULTS.md and cost.svg."""

import os
import platform
import sys
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from benchmarks.peers import recorded
from benchmarks.results_chart import Band, Line, Panel, chart
from benchmarks.results_functions import functions
from benchmarks.results_loop import BASE, Costs, Loops, loops
from benchmarks.results_report import Machine, report

HERE = Path(__file__).parent


def main() -> None:
    """Some three minutes of work: the loops, the bare functions, the report."""
    sys.stderr.write("the loop, in process and over HTTP …\n")
    measured = loops()
    sys.stderr.write("the bare functions …\n")
    alone = functions()
    (HERE / "cost.svg").write_text(picture(measured), encoding="utf-8")
    (HERE / "RESULTS.md").write_text(report(machine(), measured, alone), encoding="utf-8")
    sys.stderr.write("written: benchmarks/RESULTS.md, benchmarks/cost.svg\n")


def machine() -> Machine:
    """What it was measured on."""
    return Machine(
        cpu=processor(),
        cores=os.cpu_count() or 1,
        system=platform.system(),
        python=f"{platform.python_implementation()} {platform.python_version()}",
        date=datetime.now(UTC).date().isoformat(),
        load=os.getloadavg()[0],
        packages={name: version(name) for name in ("httpx", "msgspec", "returns")},
    )


def processor() -> str:
    """The processor's own name; its architecture where the system does not tell."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.machine())


def ratios(costs: Costs, peer: str) -> dict[int, float]:
    """The peer's costs as multiples of the baseline's."""
    return {turns: cost / costs[BASE][turns] for turns, cost in costs[peer].items()}


def picture(measured: Loops) -> str:
    """Cost a turn against the length of the run: over HTTP as ratios, in process as microseconds."""
    others = recorded.HTTP.values()
    lengths = sorted({turns for peer in others for turns in peer})
    band = Band(
        names=(*recorded.HTTP, "(recorded)"),
        low={turns: min(peer[turns] for peer in others if turns in peer) for turns in lengths},
        high={turns: max(peer[turns] for peer in others if turns in peer) for turns in lengths},
    )
    over_http = Panel(
        title="Over HTTP, against the same loop without a framework",
        across="turns of the run",
        up="CPU a turn, as a multiple",
        lines=(
            Line(name="forge", points=ratios(measured.http, "forge_new"), look="a"),
            guardrails(measured.http, recorded.GUARDRAILS_HTTP),
            Line(name="no framework", points=ratios(measured.http, BASE), look="c"),
        ),
        bands=(band,),
    )
    stub = measured.stub
    made = {turns: ratio * stub[BASE][turns] for turns, ratio in recorded.GUARDRAILS_STUB.items()}
    in_process = Panel(
        title="In process, a scripted model",
        across="turns of the run",
        up="CPU a turn, µs",
        lines=(
            Line(name="forge", points=stub["forge_new"], look="a"),
            Line(name="forge, tools in threads", points=stub["forge_threads"], look="d"),
            Line(
                name="forge-guardrails",
                points=stub.get("forge_guardrails", made),
                look="b",
                dashed="forge_guardrails" not in stub,
            ),
            Line(name="no framework", points=stub[BASE], look="c"),
        ),
    )
    return chart("What a turn costs, against the length of the run: forge beside its peers", (over_http, in_process))


def guardrails(costs: Costs, otherwise: dict[int, float]) -> Line:
    """The line of forge-guardrails: dashed where it is a recorded one."""
    measured = "forge_guardrails" in costs
    points = ratios(costs, "forge_guardrails") if measured else otherwise
    return Line(name="forge-guardrails", points=points, look="b", dashed=not measured)


if __name__ == "__main__":
    main()
