"""Prompts of agents: equal agents send equal bytes, and each request begins with the one before."""

import asyncio
import json
import subprocess
import sys
from collections.abc import Sequence
from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from forge.agent import Agent
from forge.agent.definition import NAMES, BuiltIn
from forge.interpreters.scripted import Scripted, call
from forge.workflow.checks import fill, literal, placeholders
from tests.flows import look

TEXTS = st.text(max_size=60)


def requests(instructions: str, background: str, built_in: Sequence[BuiltIn]) -> tuple[bytes, ...]:
    """What an agent sends in two turns."""
    model = Scripted([call("look", what="a"), "It is 7.", "Bye."])
    agent = Agent(
        "equal",
        backend=model,
        tools=[look],
        instructions=instructions,
        background=background,
        built_in_tools=built_in,
        grounded={"look": "what"},
    )

    async def talk() -> None:
        (await agent.process("What is a?")).unwrap()
        (await agent.process("Bye.")).unwrap()

    asyncio.run(talk())
    return model.requests


@settings(max_examples=10)
@given(TEXTS, TEXTS, st.permutations(NAMES), st.permutations(NAMES))
def test_equal_agents_send_equal_bytes(
    instructions: str, background: str, one: list[BuiltIn], other: list[BuiltIn]
) -> None:
    sent = requests(instructions, background, one)
    assert sent == requests(instructions, background, other)
    messages = [json.loads(body)["messages"] for body in sent]
    assert all(later[: len(before)] == before for before, later in pairwise(messages))


def test_they_do_so_in_every_process() -> None:
    program = "from tests.agent.test_agent_prompts import requests, NAMES;print(requests('Help.', 'A < b', NAMES))"
    # The hashes of this process have another seed.
    command = [sys.executable, "-c", program]
    said = subprocess.run(command, env={"PYTHONHASHSEED": "2"}, capture_output=True, check=True, text=True).stdout
    assert said == f"{requests('Help.', 'A < b', NAMES)}\n"


# --- Instructions are a template in which every brace stands for itself


@given(st.text(st.sampled_from("{}ab_ 1"), max_size=40))
def test_a_literal_text_comes_out_as_it_went_in(text: str) -> None:
    assert fill(literal(text), {}) == text
    assert placeholders(literal(text)) == set()
