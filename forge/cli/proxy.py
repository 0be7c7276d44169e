"""`forge proxy`: serve a backend to any client until a signal comes."""

import argparse
import asyncio
import logging
import signal
from contextlib import AsyncExitStack
from importlib.util import find_spec
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

from forge.backends import Backend, Options, named
from forge.backends.as_named import AsNamed
from forge.cli.options import key_of
from forge.cli.signals import handling
from forge.errors import ForgeError, quantity, to_install
from stages.options import OptionError
from stages.wire.deltas import Sampling

if TYPE_CHECKING:
    from forge.cli.proxy_display import Display
    from forge.proxy import ProxyOptions, ProxyServer

log = logging.getLogger("forge.proxy")


def run_proxy(options: argparse.Namespace) -> int:
    """Serve until SIGINT or SIGTERM; the second one cuts off what is under way."""
    if missing := [name for name in ("httptools", "uvicorn") if find_spec(name) is None]:
        raise ForgeError(
            f"the proxy needs {' and '.join(missing)}, which {'are' if missing[1:] else 'is'} not installed here; "
            + to_install("proxy")
        )
    from forge.cli.proxy_display import Display, ToDisplay  # noqa: PLC0415 - rich

    with Display() as display, asyncio.Runner(loop_factory=_loop()) as runner:
        for name in ("forge.proxy", "uvicorn"):
            logging.getLogger(name).addHandler(ToDisplay(display))
            logging.getLogger(name).propagate = False
        log.setLevel(logging.INFO)
        return runner.run(_serve(_backend(options), _options(options), display, plain=options.plain))


def _loop() -> "type[asyncio.AbstractEventLoop] | None":
    """The loop of uvloop, where it is installed: it halves what a request costs."""
    if find_spec("uvloop") is None:
        return None
    import uvloop  # noqa: PLC0415 - not on every platform

    return uvloop.Loop


async def _serve(backend: Backend, options: "ProxyOptions", display: "Display", *, plain: bool) -> int:
    from forge.cli.proxy_display import plain_lines, terminal_page  # noqa: PLC0415 - rich
    from forge.cli.proxy_rows import Load  # noqa: PLC0415
    from forge.proxy import ProxyServer  # noqa: PLC0415 - an extra

    async with AsyncExitStack() as stack:
        proxy = await stack.enter_async_context(ProxyServer(backend, options, display))
        code = 0
        loop = asyncio.get_running_loop()

        def stop(number: int, _: FrameType | None) -> None:
            nonlocal code
            again, code = bool(code), 128 + number
            loop.call_soon_threadsafe(_stop, proxy, display, None if again else options.grace)

        if isinstance(options.policy, Path) and hasattr(signal, "SIGHUP"):
            loop.add_signal_handler(signal.SIGHUP, _reload, proxy)
        with handling(stop):
            print(_ready(proxy), flush=True)
            page = terminal_page(plain=plain)
            display.start(page or plain_lines, lambda: Load(*proxy.load), 0.2 if page else None)
            await proxy.stopped()
            await stack.aclose()  # while signals are still handled: the second cuts off
    return code


def _stop(proxy: "ProxyServer", display: "Display", grace: float | None) -> None:
    """Stop, and say what is waited for; without a time of grace, for nothing."""
    under_way = sum(proxy.load)
    proxy.stop()
    if under_way and grace is None:
        display(f"stopped; {quantity(under_way, 'request')} cut off")
    elif under_way and grace is not None:
        said = f"waiting up to {grace:g} seconds for {quantity(under_way, 'request')}; a second Ctrl-C cuts off"
        display(f"stopping: {said}")


def _reload(proxy: "ProxyServer") -> None:
    """Read the policy again; one with faults is told in the log, and changes nothing."""
    try:
        proxy.reload()
    except ForgeError as error:
        log.error("the policy stays as it was: %s", error)  # noqa: TRY400 - the sentence says it all
    else:
        log.info("the policy was read again")


def _ready(proxy: "ProxyServer") -> str:
    return f"forge proxy: OpenAI clients {proxy.url}/v1, Anthropic clients {proxy.url}"


def _backend(options: argparse.Namespace) -> Backend:
    given: Options = {
        "mode": options.mode,
        "context_tokens": options.context,
        "sampling": None if options.temperature is None else Sampling(temperature=options.temperature),
        "api_key": key_of(options.backend_api_key_env),
        "probe": options.probe,
        "timeout": options.timeout,
    }
    if options.backend == "local":
        given = {"mode": options.mode, "context_tokens": options.context, "sampling": given["sampling"]}
    return AsNamed(named(options.backend, options.model, profile=options.profile, **given))


def _options(options: argparse.Namespace) -> "ProxyOptions":
    from forge.proxy import Policy, ProxyOptions  # noqa: PLC0415 - an extra

    try:
        return ProxyOptions(
            host=options.host,
            port=options.port,
            max_retries=options.max_retries,
            rescue=options.rescue,
            slots=options.slots,
            queue=options.queue,
            body_limit=options.body_limit * 1024 * 1024,
            grace=options.grace,
            api_key=key_of(options.api_key_env),
            insecure=options.insecure,
            origins=tuple(options.origin),
            policy=options.policy or Policy(),
        )
    except OptionError as error:
        said = "; ".join(problem.removeprefix("ProxyOptions: ") for problem in error.problems)
        raise ForgeError(said) from None
