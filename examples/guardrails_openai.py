"""Guardrails in a loop of your own, on the `openai` client: it calls the model and runs the tools, forge judges.

Run it:  python examples/guardrails_openai.py http://127.0.0.1:8080/v1 "Report on order A-17"
"""

import sys
from collections.abc import Callable
from typing import Any

from openai import OpenAI

from forge import tool
from forge.errors import as_error
from forge.guardrails import Action, AskPerson, CallModel, Finished, Guardrails, Halted, RunCalls


@tool(effect="read")
def get_order(order_id: str) -> dict[str, float]:
    """Look up the total of an order."""
    return {"total": {"A-17": 129.9}[order_id]}


def send_report(total: float) -> str:
    """Send the report, with the total that get_order gave."""
    return f"Report sent: {total}"


FUNCTIONS: dict[str, Callable[..., object]] = {"get_order": get_order, "send_report": send_report}


def run_calls(guard: Guardrails, action: RunCalls) -> Action:
    """Run the tools, and let forge know what each returned or raised."""
    results: dict[str, object] = {}
    failures: dict[str, Exception | str] = {}
    for call in action.calls:
        try:
            results[call.id] = FUNCTIONS[call.name](**call.arguments)
        except Exception as error:  # noqa: BLE001 - whatever a tool raises is for the model to hear
            failures[call.id] = error
    return guard.record(results, failures)


def answer(client: OpenAI, model: str, question: str) -> object:
    """Have the question answered; raises the ForgeError of a halt."""
    guard = Guardrails(
        tools=[get_order, send_report], required_steps=["get_order"], terminal_tool="send_report", message=question
    )
    messages: list[Any] = [{"role": "user", "content": question}]
    tools: list[Any] = guard.openai_tools()
    action = guard.action
    while True:
        match action:
            case CallModel():
                messages += action.openai()
                action = guard.check(client.chat.completions.create(model=model, messages=messages, tools=tools))
            case RunCalls():
                action = run_calls(guard, action)
            case AskPerson():
                action = guard.reject("nobody is there to ask")
            case Finished():
                return action.value
            case Halted():
                raise as_error(action.halt, action.state)


if __name__ == "__main__":
    print(answer(OpenAI(base_url=sys.argv[1], api_key="none"), "default", sys.argv[2]))
