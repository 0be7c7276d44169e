"""A worker of durable runs as a process of its own, which exports to OTLP; it answers what is asked, and ends."""

import asyncio
import json
import sys

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor

from forge import Approved, Scripted, Workflow, call, durable, tool
from forge.observation import observe_with
from forge.telemetry import instrument
from forge.telemetry.prometheus import Metrics
from stages.effect import Reply, Usage


@tool(effect="read")
def look(what: str) -> str:
    """Look."""
    return what


@tool(approval=True)
def pay(amount: float) -> str:
    """Pay."""
    return f"paid {amount}"


@tool
def done(answer: str) -> str:
    """Finish."""
    return answer


till = Workflow("till", tools=[look, pay, done], required_steps=["pay"], terminal_tool="done")


def reply(name: str, **arguments: object) -> Reply:
    made = call(name, **arguments)
    return Reply(calls=made.calls, finish=made.finish, usage=Usage(prompt=100, completion=10))


async def main(database: str, run: str) -> None:
    tracers, metrics = TracerProvider(), Metrics()
    tracers.add_span_processor(SimpleSpanProcessor(OTLPSpanExporter()))
    instrument(tracer_provider=tracers)
    observe_with(metrics)
    script = (
        [reply("done", answer="x")] if run else [reply("look", what="x"), Reply(text="hm"), reply("pay", amount=5.0)]
    )
    async with durable.worker(till, database=database, backend=Scripted(script)) as runs:
        if run:
            question = (await runs.get(run)).question
            assert question is not None
            await runs.answer(run, Approved(digest=question.digest))
            await runs.result(run, till)
        else:
            with tracers.get_tracer("own").start_as_current_span("order"):
                run = await runs.start(till, "Pay")
            await runs.wait(run)
    print(json.dumps([run, metrics.text().decode()]))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else ""))
