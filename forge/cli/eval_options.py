"""The options of `forge eval run`: from the command line, and from a TOML file with one or several models."""

import argparse
import tomllib
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct
from msgspec.structs import fields

from forge.cli.options import key_of, sampling_of
from forge.errors import ForgeError
from forge.evals.serving import ModelServer
from forge.evals.unsure_variants import asks_larger
from forge.workflow.suggestions import did_you_mean
from forge.workflow.toml_tables import table_faults

_Count = Annotated[int, Meta(ge=1)]
_Names = tuple[str, ...]


_SHORTEST = 300.0
"""Seconds that a model call may go without a byte at least: of a run that takes too long, its own limit says so."""


class ModelOptions(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A model and its server: `[[model]]` of the file, or the options of the same names."""

    backend: str
    model: str = ""
    profile: str = ""
    temperature: float | None = None
    max_tokens: _Count = 512
    api_key_env: str | None = None
    context: _Count | None = None
    slots: _Count | None = None
    chat_template: str = ""
    larger: str = ""

    def server(self, run_seconds: float) -> ModelServer:
        """The server, a call of which may take as long as a run.

        ForgeError for a key that is not set, and for sampling that no server takes.
        """
        return ModelServer(
            backend=self.backend,
            model=self.model,
            profile=self.profile,
            sampling=sampling_of(self.temperature, self.max_tokens),
            api_key=key_of(self.api_key_env),
            context_tokens=self.context,
            slots=self.slots,
            chat_template_file=self.chat_template,
            larger=self.larger,
            request_seconds=max(run_seconds, _SHORTEST),
        )


class EvalOptions(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """All that `forge eval run` is told; the file has the names of the command line."""

    model: tuple[ModelOptions, ...] = ()
    files: _Names = ()
    suite: str | None = None
    scenario: _Names = ()
    tags: _Names = ()
    runs: _Count = 5
    seed: int = 1
    mode: _Names = ("auto",)
    ablation: _Names = ("",)
    compact: _Names = ("",)
    think: _Names = ("",)
    unsure: _Names = ("",)
    against: _Names = ()
    only: _Names = ()
    output: str = "results.jsonl"
    timeout: Annotated[float, Meta(gt=0, lt=86400)] = 300.0
    parallel: _Count | None = None


_OF_MODEL = frozenset(field.name for field in fields(ModelOptions))


def eval_options(given: argparse.Namespace) -> EvalOptions:
    """The options of the command line over those of its file. ForgeError for what contradicts itself or is unknown."""
    said = {name: value for name, value in vars(given).items() if name in _known() and value != ()}
    file: Path | None = getattr(given, "config", None)
    known = _read(file) if file else {}
    if own := {name: value for name, value in vars(given).items() if name in _OF_MODEL}:
        if "model" in known:
            flag = f"--{min(own).replace('_', '-')}"
            raise ForgeError(f"{file} has the models to run; leave out {flag}, or the file's [[model]]")
        if "backend" not in own:
            raise ForgeError(f"--backend is missing: say where the model is{_or_a_file(given)}")
        known["model"] = [own]
    options = msgspec.convert(
        {**known, **{name: value for name, value in said.items() if name != "model"}}, EvalOptions
    )
    if not options.model:
        raise ForgeError(f"there is no model to run: say where it is with --backend{_or_a_file(given)}")
    _refuse_half_a_cascade(options)
    return options


def _or_a_file(given: argparse.Namespace) -> str:
    """The other way to name a model, of the command that has it."""
    return "; or give a file with [[model]] by --config" if hasattr(given, "config") else ""


def _refuse_half_a_cascade(options: EvalOptions) -> None:
    """ForgeError for a larger model that nothing asks, and for asking one that is not there."""
    asked = any(map(asks_larger, options.unsure))
    if asked and not all(model.larger for model in options.model):
        raise ForgeError("--unsure larger needs a larger model to ask: say where it is with --larger")
    if not asked and any(model.larger for model in options.model):
        raise ForgeError("--larger is asked by --unsure larger, and by nothing else: add that, or leave --larger out")


def _known() -> frozenset[str]:
    return frozenset(field.name for field in fields(EvalOptions))


def _read(file: Path) -> dict[str, Any]:
    """The file's content; paths in it are beside it."""
    try:
        content = tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise ForgeError(f"{file} cannot be read: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ForgeError(f"{file} is not TOML: {error}") from None
    for name in content.keys() - _known():
        if name in _OF_MODEL:
            raise ForgeError(f"{file}: {name} is an option of a model; write it below a [[model]]")
        raise ForgeError(f"{file}: there is no option {name!r}.{did_you_mean(name, _known())}")
    models = content.get("model", [])
    if not (isinstance(models, list) and all(isinstance(one, dict) for one in models)):
        raise ForgeError(f"{file}: models are written as [[model]], with double brackets, since there can be several")
    if faults := tuple(table_faults(content, EvalOptions)):
        raise ForgeError("\n".join(f"{file}: {fault}" for fault in faults))
    beside = file.parent
    if isinstance(files := content.get("files"), list):
        content["files"] = [str(beside / one) for one in files]
    if isinstance(suite := content.get("suite"), str) and suite.endswith(".py"):
        content["suite"] = str(beside / suite)
    if isinstance(output := content.get("output"), str):
        content["output"] = str(beside / output)
    return content
