"""Profiles: what is special about a server, as data; recommended sampling options for models."""

import functools
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

import msgspec

from forge.backends.address import address_parts, spelt_out
from forge.errors import ForgeError
from forge.toml_tables import parse_toml, read_toml
from stages.options import did_you_mean
from stages.rescue.found import Format
from stages.wire.sampling import Sampling
from stages.wire.target import Mode
from stages.wire.wires import OPENAI, WIRES, Dialect, wire

# Profile: a kind of backend as data: its protocol, its capabilities, where it reports its context.

DEFAULT_CONTEXT = 4096
"""Context in tokens if neither the server nor its profile gives a number."""

ContextSource = Literal["given", "props", "models", "model", "show"]


class Profile(Dialect, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A kind of backend: its dialect, and what else is special about it. Forge's own are TOML files in `profiles/`."""

    name: str
    """The prefix on the command line."""
    url: str = ""
    """The default address."""
    key_env: str = ""
    """The environment variable that holds the key for that address; it is read for no other."""
    key_header: str = "authorization"
    """The header that carries the key; in `authorization` it is a bearer token."""
    headers: Mapping[str, str] = {}
    """Headers of every request."""
    mode: Mode = "native"
    """The default mode of tool calls."""
    native_calls: bool = True
    """Whether the server supports `tools` at all."""
    tools_refused: tuple[str, ...] = ()
    """Texts of the errors by which the server refuses tools, because the model does not support them."""
    schema_refused: tuple[str, ...] = ("schema", "grammar", "response_format", "structured output")
    """Texts of the errors by which the server refuses a schema."""
    context: ContextSource = "given"
    """Where to ask for the context size: `props` (llama.cpp) or `models` (`max_model_len` of vLLM) with the wire
    `openai`, `model` with `anthropic`, `show` with `ollama`, `given` for nowhere."""
    alternating: bool | None = None
    """Whether the chat template requires alternating roles; if unset, the template is examined where it is visible."""
    formats: tuple[Format, ...] = ()
    """Formats in which its models write calls as text, besides those that forge knows (docs/rescue.md)."""
    temperature: float | None = None
    """The default temperature; if unset, the server decides."""
    tokenizer: bool | Literal["messages", "anthropic"] = False
    """Whether the server counts tokens: `true` at `/apply-template` and `/tokenize` like llama.cpp, `"messages"` at
    `/tokenize` like vLLM, which accepts messages, `"anthropic"` at `/v1/messages/count_tokens`."""
    logprobs: bool = False
    """Whether the server returns token probabilities with alternatives on request (`logprobs` and `top_logprobs` of
    chat completions; docs/confidence.md)."""

    def __post_init__(self) -> None:
        """ValueError for contradictions, an invalid address, and unknown options."""
        if self.mode == "native" and not self.native_calls:
            raise ValueError('mode = "native" needs native_calls = true')
        if self.mode == "constrained" and self.constrain == "none":
            raise ValueError('mode = "constrained" needs constrain = "json_schema", or another way that it has')
        spoken = WIRES[self.wire]
        ways = ("none", *spoken.constraints)
        if self.constrain not in ways:
            has = ", ".join(ways)
            raise ValueError(
                f'constrain = "{self.constrain}" is not for the wire "{self.wire}"; there it may be: {has}'
            )
        if self.tool_choice != "none" and (not spoken.demands or not self.native_calls):
            raise ValueError(f'tool_choice = "{self.tool_choice}" needs tools in the request; leave it out')
        asked = ("props", "models") if spoken.lists_models else ("show",) if spoken.sets_context else ("model",)
        if self.context not in ("given", *asked):
            has = ", ".join(("given", *asked))
            raise ValueError(f'context = "{self.context}" is not for the wire "{self.wire}"; there it may be: {has}')
        if self.logprobs and not spoken.logprobs:
            raise ValueError(f'logprobs is not for the wire "{self.wire}"; leave it out')
        options = [name for name in Sampling.__struct_fields__ if name != "extra"]
        if wrong := [name for name in self.option_names if name not in options]:
            meant = did_you_mean(wrong[0], options)
            raise ValueError(f"option_names has no option {wrong[0]!r}; the options are: {', '.join(options)}.{meant}")
        try:
            if self.url:
                address_parts(spelt_out(self.url))
        except ForgeError as error:
            raise ValueError(f"url: {error}") from None

    def refusals(self, mode: Mode) -> tuple[str, ...]:
        """Words of an error after which the tools must be described in the prompt, without a schema."""
        match mode:
            case "native":
                return self.tools_refused + (self.schema_refused if self.constrain == "strict" else ())
            case "constrained":
                return self.schema_refused
            case "prompted":
                return ()

    def dialect(self, context_tokens: int) -> Dialect:
        """How to speak the wire to this backend; Ollama is told the context size in tokens."""
        own = {name: getattr(self, name) for name in Dialect.__struct_fields__}
        # Ollama silently truncates prompts to its default context, so tell it the size that forge relies on.
        own["context_tokens"] = context_tokens if WIRES[self.wire].sets_context else None
        return Dialect(**own)


def to_toml(profile: Profile) -> str:
    """The profile as a TOML file, without default values."""
    return msgspec.toml.encode({"name": profile.name, **msgspec.to_builtins(profile)}).decode()


def from_toml(text: str, origin: str = "the profile") -> Profile:
    """The profile in a TOML text. ForgeError with every mistake; `origin` names the text in it."""
    return _converted(parse_toml(text, Profile, origin), origin)


def load_profile(path: Path) -> Profile:
    """The profile in a file. ForgeError if it cannot be read or is invalid."""
    return _converted(read_toml(path, Profile, "profile"), str(path))


def _converted(tables: Mapping[str, object], origin: str) -> Profile:
    try:
        return msgspec.convert(tables, Profile)
    except msgspec.ValidationError as error:  # contradictions in the content
        raise ForgeError(f"{origin}: {error}") from None


_PROFILES = Path(__file__).with_name("profiles")


@functools.cache
def names() -> tuple[str, ...]:
    """The names of forge's own profiles, in alphabetical order."""
    return tuple(sorted(file.stem for file in _PROFILES.glob("*.toml")))


@functools.cache
def named_profile(name: str) -> Profile:
    """The profile with that name. ForgeError, with the existing names, for any other."""
    if name not in names():
        meant = did_you_mean(name, names())
        raise ForgeError(f"there is no profile {name!r}; there are: {', '.join(names())}.{meant}")
    text = (_PROFILES / f"{name}.toml").read_text(encoding="utf-8")
    return from_toml(text, f"forge/backends/profiles/{name}.toml")


def given_profile(given: Profile | Path | str | None) -> Profile | None:
    """The profile given by name, by file, or directly. ForgeError if there is none."""
    match given:
        case None | Profile():
            return given
        case Path():
            return load_profile(given)
        case str() if given.endswith(".toml"):
            return load_profile(Path(given))
        case str():
            return named_profile(given)


def base_url(url: str, profile: Profile | None) -> str:
    """The address that the wire's path is appended to; a bare host gets `/v1` if the protocol has it.

    ForgeError for an invalid address; the message never shows a possible password.
    """
    given = spelt_out(url or (profile.url if profile else ""))
    parts = address_parts(given)
    protocol = WIRES[profile.wire] if profile else OPENAI
    trimmed = given.rstrip("/").removesuffix(protocol.path)
    return trimmed if parts.path.strip("/") or protocol.at_root else f"{trimmed}/v1"


# Sampling options recommended by a model's makers: a table looked up by model name, never guessed.


class _Row(Sampling, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Models with the same recommendation. `thinks`: they reason before answering.

    `thinking` are parameters for their chat template.
    """

    names: tuple[str, ...]
    thinks: bool = False
    thinking: Mapping[str, str | bool] = {}

    def sampling(self) -> Sampling:
        options = {name: getattr(self, name) for name in Sampling.__struct_fields__}
        return Sampling(**{**options, "extra": {"chat_template_kwargs": self.thinking} if self.thinking else {}})


def known_sampling(model: str) -> Sampling | None:
    """The recommendation for the model with that name; None if it is not in the table."""
    row = _known().get(_plain(model))
    return row.sampling() if row else None


def recommended(model: str) -> Sampling:
    """The recommendation for a model, given as an Ollama tag, or the name or path of a GGUF file.

    ForgeError, with the nearest names, for a model that is not in the table (`forge/backends/sampling.toml`).
    """
    if (known := known_sampling(model)) is not None:
        return known
    spelling = {_plain(name): name for row in _known().values() for name in row.names}
    import difflib  # noqa: PLC0415 - only a mistake needs it

    near = difflib.get_close_matches(_plain(model), spelling, n=3, cutoff=0.5)
    instead = f"; the nearest names are {', '.join(spelling[name] for name in near)}" if near else ""
    raise ForgeError(f"no sampling is recommended for the model {model!r}{instead}. Give the options yourself.")


def usual(model: str, temperature: float | None) -> Sampling:
    """The default sampling: a low temperature, because calls copy values rather than invent them.

    A reasoning model gets its makers' temperature; they warn that it repeats itself at lower ones.
    """
    if temperature is None:
        return Sampling()
    row = _known().get(_plain(model))
    return Sampling(temperature=row.temperature if row and (row.thinks or row.thinking) else temperature)


def low_temperature(profile: Profile, url: str) -> float | None:
    """Forge's default temperature; None leaves it to the server.

    An unknown server reached over https may be hosted, and some hosted models accept no temperature.
    """
    return None if profile.name == "openai-compatible" and url.startswith("https:") else profile.temperature


def check_sampling(sampling: Sampling, profile: Profile) -> None:
    """ForgeError for a sampling option that the backend lacks."""
    try:
        wire(profile.dialect(DEFAULT_CONTEXT)).head("", sampling, ())
    except ValueError as error:
        raise ForgeError(f"{profile.name}: {error}") from None


@functools.cache
def _known() -> dict[str, _Row]:
    text = Path(__file__).with_name("sampling.toml").read_text(encoding="utf-8")
    rows = msgspec.convert(tomllib.loads(text)["model"], list[_Row])
    return {_plain(name): row for row in rows for name in row.names}


def _plain(name: str) -> str:
    """The name in lower case, without folder, extension and shard number; in Ollama tags, the folder is an owner."""
    stem = re.sub(r"\.(gguf|llamafile)$", "", name.replace("\\", "/").rsplit("/", 1)[-1].lower())
    return re.sub(r"-\d{5}-of-\d{5}$", "", stem)
