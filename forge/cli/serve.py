"""`forge serve`: durable runs behind HTTP with a page; `forge key`: keys for its callers."""

import argparse
import asyncio
from pathlib import Path

from forge.cli.console import Console
from forge.cli.durable import database_of
from forge.cli.options import backend_for, options_of
from forge.cli.progress import downloading
from forge.cli.run import load_served
from forge.cli.signals import until_signal


def run_serve(options: argparse.Namespace) -> int:
    """Serve until SIGINT or SIGTERM. A second signal exits immediately; no run is lost."""
    from forge.serve import RunServer, ServeOptions  # noqa: PLC0415 - an extra

    served = [load_served(reference, "forge serve") for reference in options.workflows]
    console = Console(stderr=True)
    with downloading(console) as progress:
        backend = backend_for(options, served, progress)
        server = RunServer(
            served,
            database=database_of(options),
            backend=backend,
            options=options_of(ServeOptions, options),
            concurrency=options.concurrency,
            slots=options.slots,
            per_minute=options.per_minute,
            answer_within=options.answer_within.total_seconds(),
        )

        async def serving() -> int:
            async with server:
                print(f"forge serve: {server.url}", flush=True)
                console.say(f"runs are stored in {server.runs.where}; press Ctrl-C to stop")
                await server.stopped()
            return 0

        return asyncio.run(until_signal(serving(), server.stop))


def run_key(options: argparse.Namespace) -> int:
    """Create a key, add its hash to the file, and print the key, which is not stored anywhere."""
    from forge.serve.keys import add_key, scopes_of  # noqa: PLC0415 - an extra

    path: Path = options.key_file
    print(add_key(path, options.owner, scopes_of(options.scopes)))
    Console(stderr=True).say(f"its hash was added to {path}; save the key now, it is not shown again")
    return 0
