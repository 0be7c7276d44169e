"""The levels of escalation on a real server: each request is taken, and what it asks for comes."""

import pytest
from msgspec.structs import replace

from forge import Limits, ToolResolutionError, Workflow, run_sync, tool
from forge.backends import Server
from forge.backends.profile import named_profile
from stages import events
from stages.rules import Escalation, EscalationLevel
from stages.serialize import Mode
from stages.wire.deltas import Sampling

LLAMA = replace(named_profile("llama-server"), tool_choice="required")


@tool(effect="read")
def search(text: str, limit: int = 10, kind: str = "any") -> str:
    """Search."""
    raise ToolResolutionError(f"Nothing is found for {text!r}.")


@tool
def finish(result: str) -> str:
    """Finish."""
    return result


def seen(url: str, mode: Mode, level: EscalationLevel) -> list[events.Event]:
    """What is seen of a run that can only fail, until its level was reached."""
    workflow = Workflow(
        "search",
        tools=[search, finish],
        required_steps=["search"],
        terminal_tool="finish",
        escalation=Escalation(levels=(level,)),
        limits=Limits(max_iterations=4, max_retries_per_step=9, max_tool_errors=9, max_repeats=None),
    )
    told: list[events.Event] = []
    backend = Server(url, mode=mode, profile=LLAMA, sampling=Sampling(max_tokens=48, temperature=0.0))
    run_sync(workflow, "Find cats.", backend=backend, observer=told.append)
    assert [type(e.halt).__name__ for e in told if isinstance(e, events.RunHalted)] == ["BudgetSpent"]
    return told


def test_another_mode_makes_a_call_of_what_was_only_talk(smol: str) -> None:
    told = seen(smol, "native", "constrained")
    changed = next(place for place, e in enumerate(told) if isinstance(e, events.ModeChanged))
    assert not [e for e in told[:changed] if isinstance(e, events.CallsAccepted)]
    assert [e for e in told[changed:] if isinstance(e, events.CallsAccepted)]


@pytest.mark.parametrize("level", ["call", "prompted"])
def test_a_demand_and_tools_in_the_prompt_are_taken(smol: str, level: EscalationLevel) -> None:
    told = seen(smol, "native", level)
    assert len([e for e in told if isinstance(e, events.ModelReplied)]) == 4
    assert [e for e in told if isinstance(e, events.Narrowed | events.ModeChanged)]


def test_without_its_optional_arguments_a_tool_is_called_without_them(smol: str) -> None:
    calls = [e.calls[0].arguments for e in seen(smol, "constrained", "simple") if isinstance(e, events.CallsAccepted)]
    assert "limit" not in calls[-1]
    assert "text" in calls[-1]
