"""Each layer of the clients' libraries, unchanged, against the proxy before servers of three protocols.

A "wrong" one's model first calls with arguments that do not fit, then writes the call into the text, damaged; its chat
server sends no finish_reason, no usage and calls without ids.
"""

import pytest

from forge.backends import named
from forge.proxy import ProxyOptions, ProxyServer
from tests.clients.backend import MODEL, backend
from tests.clients.libraries import LIBRARIES, layers_of
from tests.clients.script import Manner
from tests.clients.shapes import PROFILES


@pytest.mark.parametrize(
    ("library", "shape", "manner"),
    [
        *((library, "chat", "wrong") for library in LIBRARIES),
        *(("openai", shape, "wrong") for shape in PROFILES if shape != "chat"),
        # the other two: test_faulty_servers.py
        *((library, "chat", "right") for library in ("langchain", "pydantic_ai")),
    ],
)
async def test_each_layer_gets_what_it_wants_of_a_server(library: str, shape: str, manner: Manner) -> None:
    async with backend(shape, manner) as url:
        for name, layer in layers_of(library).items():
            print(name)  # seen where it fails
            # LangChain keeps its clients by address, closed ones too.
            async with ProxyServer(named(url, MODEL, profile=PROFILES[shape]), ProxyOptions(port=0)) as proxy:
                await layer(proxy.url)
