"""pydantic-ai at work on scenarios, in an environment of its own.

Mode `default`: every tool is a function tool, and the run ends with text, or when the tool that ends it has run. In the
others that tool is an output function of the agent, asked for as a tool, by the server's own JSON schema, or in the
prompt.
"""
# mypy: ignore-errors
# ruff: noqa: ANN001, ANN003, ANN201, ANN202

import asyncio

from openai import AsyncOpenAI
from pipe import begin, orders, run_tool, tell
from pydantic_ai import Agent, ModelRetry, NativeOutput, PromptedOutput, StructuredDict, Tool, ToolOutput
from pydantic_ai.exceptions import AgentRunError, UserError
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider
from pydantic_ai.usage import UsageLimits


class EndedError(Exception):
    """The tool that ends the run has run."""


def function_tool(spec, ends):
    def call(**values):
        answer = run_tool(spec["name"], values)
        if answer.get("error"):
            raise ModelRetry(answer["error"])
        if ends:
            raise EndedError(answer["text"])
        return answer["text"]

    return Tool.from_schema(call, spec["name"], spec["description"], spec["parameters"], sequential=True)


def output_function(spec):
    values_of = StructuredDict(spec["parameters"], name=spec["name"], description=spec["description"])

    def call(values: values_of) -> str:
        answer = run_tool(spec["name"], dict(values))
        if answer.get("error"):
            raise ModelRetry(answer["error"])
        return answer["text"]

    call.__name__ = spec["name"]
    call.__doc__ = spec["description"]
    return call


def output_type(order, outputs):
    words = [str] if order["words"] else []
    match order["mode"]:
        case "default":
            return str
        case _ if not outputs:
            return str
        case "tool":
            return [*(ToolOutput(f, name=f.__name__, description=f.__doc__) for f in outputs), *words]
        case "native":
            return NativeOutput(outputs)
        case "prompted":
            return PromptedOutput(outputs)


def agent_of(order):
    # How long a reply may take is the runner's to say, for all players alike.
    client = AsyncOpenAI(base_url=f"{order['url']}/v1", api_key="none", timeout=None)
    model = OpenAIChatModel("model", provider=OpenAIProvider(openai_client=client))
    separate = order["mode"] != "default"
    terminal = [spec for spec in order["tools"] if spec["name"] in order["terminal"]]
    plain = [spec for spec in order["tools"] if not separate or spec not in terminal]
    return Agent(
        model,
        system_prompt=order["system"],
        tools=[function_tool(spec, spec["name"] in order["terminal"]) for spec in plain],
        output_type=output_type(order, [output_function(spec) for spec in terminal]),
        retries=order["retries"],
    )


async def play(order):
    """Say one message after the other; the history goes on."""
    agent, history = agent_of(order), []
    for number, message in enumerate(order["messages"]):
        begin(number)
        try:
            limit = UsageLimits(request_limit=order["iterations"])
            result = await agent.run(message, message_history=history, usage_limits=limit)
        except EndedError as end:
            if number + 1 < len(order["messages"]):
                return tell(ended="EndedError", why="the history of a run that a tool ended is lost")
            tell(done=str(end))
        except (AgentRunError, UserError) as error:
            return tell(ended=type(error).__name__, why=str(error))
        else:
            history = result.all_messages()
            tell(done=str(result.output))
    return tell(ended="completed", why="")


for each in orders():
    asyncio.run(play(each))
