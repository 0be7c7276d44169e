"""`forge priors`: what a model prefers whatever it is asked, from the journals of its runs."""

import argparse
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec
from rich.text import Text

from forge.cli.console import Console, printable
from forge.errors import ForgeError, quantity
from forge.journal.priors import measured_priors

_FEW = 20


def run_priors(options: argparse.Namespace) -> int:
    """Print the priors, and write them to a file if one is named."""
    output: Path | None = options.output
    if output is not None and not output.parent.is_dir():
        raise ForgeError(f"--output {output}: there is no folder {output.parent}")
    found = measured_priors(_journals(options.journals))
    if output is not None:
        output.write_bytes(msgspec.json.format(msgspec.json.encode(found)) + b"\n")
    console = Console(highlight=False)
    console.print(Text(f"model: {printable(found.model)}"), soft_wrap=True)
    for prior in found.priors:
        few = f"; fewer than {_FEW} say little" if prior.replies < _FEW else ""
        what = printable(f"{prior.tool}.{prior.argument}")
        console.print(Text(f"{what}, of {quantity(prior.replies, 'choice')}{few}"), soft_wrap=True)
        for value, share in sorted(zip(prior.values, prior.shares, strict=True), key=lambda one: -one[1]):
            console.print(Text(f"  {share:4.0%}  {printable(value)}"), soft_wrap=True)
    if output is not None:
        console.print(Text(f"written to {output}", style="dim"), soft_wrap=True)
    return 0


def _journals(given: Iterable[Path]) -> Iterator[Path]:
    """The journals named, and those in the folders named. ForgeError for a folder without any."""
    for path in given:
        if not path.is_dir():
            yield path
        elif inside := sorted(path.rglob("*.jsonl")):
            yield from inside
        else:
            raise ForgeError(f"there is no journal in the folder {path}")
