"""Answers: the end of a run as the result of an MCP tool, and its question as a form for the client's user."""

import re
from typing import assert_never

import msgspec
from mcp_types import CallToolResult, ElicitRequestFormParams, ElicitResult, TextContent
from mcp_types import Tool as ServedTool
from returns.result import Failure, Result

from forge.outcome import Finished, Halted
from forge.workflow.workflow import Workflow
from stages.effect import HandOff, NeedsInput, Said
from stages.state import Completed, State

MESSAGE = "message"
"""The argument of the tool: what the user asks for."""

ANSWER = "answer"
"""The field of the form that a question becomes."""

_ILLEGAL = re.compile(r"[^A-Za-z0-9_-]")


def served_tool(workflow: Workflow, description: str) -> ServedTool:
    """The workflow as a tool, which takes the user's message."""
    does = ", ".join(spec.name for spec in workflow.rules.tools)
    message = {"type": "string", "description": "The request, in full: nothing else of the conversation is known."}
    return ServedTool(
        name=_ILLEGAL.sub("_", workflow.name)[:64] or "workflow",
        description=description or f"Works on a request by itself, with these tools: {does}.",
        input_schema={"type": "object", "properties": {MESSAGE: message}, "required": [MESSAGE]},
    )


def result_of(ended: Result[Finished, Halted]) -> CallToolResult:
    """What the client's model is told: the value, the words, the question; or why the run halted, as an error."""
    if isinstance(ended, Failure):
        return failed(str(ended.failure()))
    match ended.unwrap().outcome:
        case Completed(value=value):
            return _completed(bytes(value))
        case Said(text=text):
            return _told(text)
        case NeedsInput(question=question, suggestions=suggestions):
            return _told("\n- ".join((question, *suggestions)))
        case HandOff(to=to, payload=payload):
            return _told(f"The request is to be handed over to {to}: {payload}")
        case other:
            assert_never(other)


def failed(why: str) -> CallToolResult:
    """An error with that sentence."""
    return CallToolResult(content=[TextContent(text=why)], is_error=True)


def _completed(value: bytes) -> CallToolResult:
    decoded: object = msgspec.json.decode(value)
    text = decoded if isinstance(decoded, str) else value.decode()
    structured = decoded if isinstance(decoded, dict) else None
    return CallToolResult(content=[TextContent(text=text)], structured_content=structured)


def _told(text: str) -> CallToolResult:
    return CallToolResult(content=[TextContent(text=text)])


def question_of(ended: Result[Finished, Halted]) -> tuple[NeedsInput, State] | None:
    """The question that the run ended with, and the state in which its answer is awaited; None: it did not."""
    if isinstance(ended, Failure):
        return None
    finished = ended.unwrap()
    return (finished.outcome, finished.state) if isinstance(finished.outcome, NeedsInput) else None


def form_of(question: NeedsInput) -> ElicitRequestFormParams:
    """The question as a form with one field."""
    field = {"type": "string", "title": "Answer"}
    if question.suggestions:
        field["description"] = f"For example: {'; '.join(question.suggestions)}"
    schema = {"type": "object", "properties": {ANSWER: field}, "required": [ANSWER]}
    return ElicitRequestFormParams(message=question.question, requested_schema=schema)


def answer_in(form: ElicitResult) -> str | None:
    """What the user answered; None: nothing."""
    said = (form.content or {}).get(ANSWER) if form.action == "accept" else None
    return said if isinstance(said, str) and said.strip() else None
