"""Each layer of the clients' libraries, unchanged, against the proxy before servers that misbehave, of three protocols.

Their models first call with arguments that do not fit, then write the call into the text, damaged; the chat server
sends no finish_reason, no usage and calls without ids.
"""

import asyncio

import pytest

from forge.backends import named
from forge.proxy import ProxyOptions, ProxyServer
from tests.clients.backend import MODEL, backend
from tests.clients.layers import Layer
from tests.clients.libraries import LIBRARIES, layers_of
from tests.clients.script import Manner
from tests.clients.shapes import PROFILES


async def used(layer: Layer, shape: str, manner: Manner) -> None:
    async with (
        asyncio.timeout(60),
        backend(shape, manner) as url,
        ProxyServer(named(url, MODEL, profile=PROFILES[shape]), ProxyOptions(port=0)) as proxy,
    ):
        await layer(proxy.url)


@pytest.mark.parametrize(
    ("library", "shape"),
    [*((library, "chat") for library in LIBRARIES), *(("openai", shape) for shape in PROFILES if shape != "chat")],
)
def test_each_layer_gets_what_it_wants_of_a_server_that_misbehaves(library: str, shape: str) -> None:
    for name, layer in layers_of(library).items():
        print(name)  # seen where it fails
        asyncio.run(used(layer, shape, "wrong"))


@pytest.mark.parametrize("library", ["langchain", "pydantic_ai"])  # the other two: test_faulty_servers.py
def test_each_layer_gets_what_it_wants_of_a_server_that_is_right(library: str) -> None:
    for name, layer in layers_of(library).items():
        print(name)
        asyncio.run(used(layer, "chat", "right"))
