"""An agent behind HTTP: a conversation message by message, and what happens in the agents within it."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx

from forge import Scripted, call, tool
from forge.agent import Agent, agent_tool
from forge.serve import RunServer, ServeOptions
from stages.effect import Reply
from tests.serve.served import event_of


async def events(client: httpx.AsyncClient, run: str) -> AsyncIterator[Any]:
    async with client.stream("GET", f"/v1/runs/{run}/events") as stream:
        found: dict[str, str] = {}
        async for line in stream.aiter_lines():
            if line:
                name, _, value = line.partition(": ")
                found[name] = value
            else:
                yield event_of(found)
                found = {}


async def test_an_agent_is_talked_to(tmp_path: Path) -> None:
    going = asyncio.Event()

    @tool(effect="read")
    async def look(what: str) -> str:
        """Look at something."""
        await going.wait()
        return "oak"

    expert = Agent("expert", backend=Scripted([call("look", what="T-1"), "Of oak."]), tools=[look])
    script: list[Reply | str] = [call("expert", task="What is T-1 made of?"), "It is of oak.", "You asked about T-1."]
    shop = Agent("shop", backend=Scripted(script), tools=[agent_tool(expert, description="Ask an expert.")])
    options = ServeOptions(port=0)
    async with (
        RunServer(shop, database=tmp_path / "runs.db", options=options) as server,
        httpx.AsyncClient(base_url=server.url, timeout=60, trust_env=False) as client,
    ):
        (view,) = (await client.get("/v1/workflows")).json()["workflows"]
        assert (view["name"], view["agent"]) == ("shop", True)
        wanted = {"workflow": "shop", "message": "What is T-1 made of?", "conversation": "ann", "background": True}
        first = (await client.post("/v1/runs", json=wanted)).json()
        live, recorded = list[Any](), list[Any]()
        async for event in events(client, first["id"]):
            if within := event.get("stamped", {}).get("parent"):
                assert (event["stamped"]["agent"], within) == ("expert", first["id"])
                (recorded if event["id"] else live).append(event)
            if event["type"] == "calls_accepted" and within and not event["id"]:
                # While the expert is at work, another message is refused.
                busy = await client.post("/v1/runs", json={**wanted, "message": "And T-2?"})
                assert (busy.status_code, busy.json()["type"]) == (409, "urn:forge:problem:wrong-state")
                going.set()
            if event["type"] == "state" and event["run"]["state"] == "completed":
                assert event["run"]["outcome"] == {"type": "said", "text": "It is of oak."}
                break
        assert [one["type"] for one in live][:4] == ["run_started", "connected", "turn_started", "model_replied"]
        assert [one["type"] for one in recorded] == [one["type"] for one in live]
        again = [event async for event in events(client, first["id"]) if event.get("stamped", {}).get("parent")]
        assert again == recorded
        # The next message goes on from there; with a key, it is one however often it is sent.
        wanted, key = {**wanted, "message": "What did I ask?", "background": False}, {"idempotency-key": "a"}
        second = (await client.post("/v1/runs", json=wanted, headers=key)).json()
        assert (second["outcome"]["text"], second["follows"]) == ("You asked about T-1.", first["id"])
        assert (await client.post("/v1/runs", json=wanted, headers=key)).json()["id"] == second["id"]
        wrong = await client.post("/v1/runs", json={**wanted, "conversation": "a b"})
        assert (wrong.status_code, wrong.json()["field"]) == (422, "conversation")
