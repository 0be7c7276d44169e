"""`forge mcp`: serve a workflow or an agent as an MCP tool on standard input and output."""

import argparse
import asyncio
import os
import sys

from forge.agent import Agent
from forge.cli.console import Console
from forge.cli.options import backend_for
from forge.cli.progress import downloading
from forge.cli.run import load_served, prompt_values
from forge.cli.signals import until_signal
from forge.connection import AnyBackend
from forge.errors import ForgeError


def run_mcp(options: argparse.Namespace) -> int:
    """Serve until the client closes standard input; returns the exit code."""
    source, target = _claimed()
    try:
        from forge.mcp.serving import serve  # noqa: PLC0415 - it imports the SDK, which is an extra
    except ImportError as error:
        raise ForgeError(str(error)) from None
    served = load_served(options.workflow)
    workflow = served.workflow if isinstance(served, Agent) else served
    values = prompt_values(options.var)
    workflow.start("a request", values)  # report an invalid definition now rather than to a client

    async def work() -> int:
        with downloading(Console(stderr=True)) as progress:
            backend: AnyBackend | None = backend_for(options, [served], progress)
            if backend is None:
                assert isinstance(served, Agent), "see backend_for"  # noqa: S101
                backend = served.backend
            await serve(
                workflow,
                backend=backend,
                source=source,
                target=target,
                description=options.description,
                prompt_vars=values,
            )
        return 0

    return asyncio.run(until_signal(work()))


def _claimed() -> tuple[int, int]:
    """New descriptors for standard input and output; the originals become the null device and standard error.

    Otherwise, output of the user's file, or of programs that it starts, would be read as the protocol.
    """
    sys.stdout.flush()
    try:
        source, target = os.dup(0), os.dup(1)
    except OSError:
        raise ForgeError(
            "forge mcp uses standard input and output to talk to its client, and one of them is closed"
        ) from None
    if os.isatty(source):
        sys.stderr.write("Waiting for an MCP client on standard input. Press Ctrl-C to stop.\n")
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)
    return source, target
