"""LangChain's chat models on all three protocols: calls whole and streamed, a loop, structured output."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

from langchain_anthropic import ChatAnthropic
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, HumanMessage
from langchain_core.messages.ai import add_ai_message_chunks
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI

from tests.clients.layers import ASK, TOKENS, TURNS, WHERE, Layer, Place, ran

Make = Callable[[str], AbstractAsyncContextManager[BaseChatModel]]


@tool
def shell(command: str) -> str:
    """Run a command."""
    return ran(command)


@asynccontextmanager
async def chat(url: str, *, responses: bool = False) -> AsyncIterator[BaseChatModel]:
    told: Any = {"base_url": f"{url}/v1", "api_key": "dummy", "max_retries": 0, "temperature": 0}
    model = ChatOpenAI(model="m", use_responses_api=responses, max_completion_tokens=TOKENS, **told)
    yield model
    await model.root_async_client.close()


def responses(url: str) -> AbstractAsyncContextManager[BaseChatModel]:
    return chat(url, responses=True)


@asynccontextmanager
async def messages(url: str) -> AsyncIterator[BaseChatModel]:
    told: Any = {"base_url": url, "api_key": "dummy", "max_retries": 0, "max_tokens": TOKENS}
    model = ChatAnthropic(model_name="m", **told)
    yield model
    await model._async_client.close()


def _calls(make: Make) -> Layer:
    async def layer(url: str) -> None:
        async with make(url) as model:
            bound = model.bind_tools([shell])
            message = await bound.ainvoke(ASK)
            assert isinstance(message, AIMessage)
            _held(message)
            pieces = [piece async for piece in bound.astream(ASK)]
            first, *others = (piece for piece in pieces if isinstance(piece, AIMessageChunk))
            _held(add_ai_message_chunks(first, *others))

    return layer


def _held(message: AIMessage) -> None:
    (call,) = message.tool_calls
    assert (call["name"], message.invalid_tool_calls) == ("shell", [])
    assert call["id"]
    ran(call["args"]["command"])


def _loop(make: Make) -> Layer:
    async def layer(url: str) -> None:
        async with make(url) as model:
            bound = model.bind_tools([shell])
            history: list[Any] = [HumanMessage(ASK)]
            for _ in range(TURNS):
                history.append(await bound.ainvoke(history))
                if not history[-1].tool_calls:
                    break
                history += [await shell.ainvoke(call) for call in history[-1].tool_calls]
            assert len(history) > 3
            assert history[-1].text

    return layer


def _structured(method: str) -> Layer:
    async def layer(url: str) -> None:
        async with chat(url) as model:
            bound: Any = model.with_structured_output(Place, method=method)
            assert isinstance(await bound.ainvoke(WHERE), Place)

    return layer


LAYERS: dict[str, Layer] = {
    "chat": _calls(chat),
    "responses": _calls(responses),
    "messages": _calls(messages),
    "chat_loop": _loop(chat),
    "responses_loop": _loop(responses),
    "messages_loop": _loop(messages),
    "structured_by_schema": _structured("json_schema"),
    "structured_by_call": _structured("function_calling"),
}
