"""Backend: a server in this loop with a scripted model, in the shape of one protocol."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from aiohttp import web
from aiohttp.typedefs import Handler

from tests.clients.script import Manner, answer
from tests.clients.shapes import SHAPES, Shape

MODEL = "scripted"


@asynccontextmanager
async def backend(shape: str, manner: Manner) -> AsyncIterator[str]:
    """Its address, as long as the block lasts."""
    app = web.Application(client_max_size=1 << 26)
    app.add_routes([web.post(SHAPES[shape].path, _answering(SHAPES[shape], manner)), *_pages()])
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=1)
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


def _answering(shape: Shape, manner: Manner) -> Handler:
    async def respond(request: web.Request) -> web.StreamResponse:
        asked = shape.read(await request.json())
        said = answer(asked, manner)
        if not asked.stream:
            return web.json_response(shape.whole(said))
        response = web.StreamResponse(headers={"content-type": shape.type})
        await response.prepare(request)
        for part in shape.stream(said):
            await response.write(part)
        return response

    return respond


def _pages() -> list[web.RouteDef]:
    listed = {"object": "list", "data": [{"id": MODEL, "object": "model", "created": 1, "owned_by": "nobody"}]}
    pages = {
        "/v1/models": listed,
        "/api/tags": {"models": [{"name": MODEL, "model": MODEL, "details": {}}]},
        "/api/version": {"version": "0.14.0"},
    }

    def page(told: object) -> Handler:
        async def respond(_: web.Request) -> web.StreamResponse:
            return web.json_response(told)

        return respond

    async def show(_: web.Request) -> web.StreamResponse:
        capable = {"capabilities": ["completion", "tools"], "model_info": {"general.architecture": "x"}}
        return web.json_response({**capable, "details": {}})

    return [web.get(path, page(told)) for path, told in pages.items()] + [web.post("/api/show", show)]
