"""Profiles: what is special about a server, as data; sampling as a model's makers recommend."""

import functools
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

import msgspec
from msgspec import UNSET, Struct, UnsetType

from forge.backends.address import address_parts, spelt_out
from forge.errors import ForgeError
from forge.toml_tables import parse_toml, read_toml
from stages.options import did_you_mean
from stages.rescue.found import Format
from stages.wire.deltas import Sampling
from stages.wire.target import Mode
from stages.wire.wires import WIRES, Constrain, Dialect, ToolChoice, WireName, wire

# Profile: what a backend is, as data: its protocol, what it can do, where it says what it has.

DEFAULT_CONTEXT = 4096
"""Tokens of context that are assumed where neither the server nor its profile says how many it has."""

ContextSource = Literal["given", "props", "models", "show"]


class Profile(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A kind of backend. What ships with forge is in `forge/backends/profiles/`, one TOML file each.

    `name` is what is written before the colon on a command line, `url` the address of its own that it has where none
    is given. `key_env` is the environment variable with the key for that very address: it is read for no other.
    `key_header` is the header that a key is sent in; in `authorization` it is a bearer token.
    `headers` and `body` are sent with every request, as they are; `tools_body` with those that have tools.

    `option_names` are its own names for sampling options; the empty one says that it has no such option.

    `wire` is the protocol. `mode` is how tool calls are asked for where the user leaves that to forge. `native_calls`:
    whether requests may have `tools` at all. `constrain` is how a reply's JSON Schema is asked for: `json_schema` and
    `strict` as `response_format` (the latter in OpenAI's strict subset), `json_object` there with the schema beside the
    type (llama-cpp-python), `format` as Ollama has it, `structured_outputs` and `guided_json` as newer and older vLLM.
    `tool_choice` is which demand for a call it obeys: `required`, of any tool; `named`, of one by its name too.
    `tools_refused` are words of the error with which it refuses tools that the model behind it does not know,
    `schema_refused` of one that refuses a schema.

    `context` says where the size of the context is asked: `props` (llama.cpp), `models` (`max_model_len` of vLLM),
    `show` (Ollama), or nowhere: `given`. `context_tokens` is what it is where that gives no number.
    `alternating`: the model's template wants roles to take turns; unset, the template is asked, where it is shown.
    `temperature` is what forge asks for where the user says nothing (`forge.backends.profile.usual`); without it the
    server's own counts. `tokenizer`: the server counts tokens, at llama.cpp's `/apply-template` and `/tokenize`, or,
    with `messages`, at vLLM's `/tokenize`, which takes the messages of a request.
    `prompt_cache`: it is told how much of a prompt to keep (Anthropic's `cache_control`); others keep it untold.
    `formats`: how its models write calls as text, besides the formats that forge knows (docs/rescue.md).
    `logprobs`: it gives the probabilities of a reply's tokens and of their alternatives, where these are asked for.
    """

    name: str
    wire: WireName = "openai"
    url: str = ""
    key_env: str = ""
    key_header: str = "authorization"
    headers: Mapping[str, str] = {}
    body: Mapping[str, object] = {}
    tools_body: Mapping[str, object] = {}
    option_names: Mapping[str, str] = {}
    mode: Mode = "native"
    native_calls: bool = True
    constrain: Constrain = "none"
    tool_choice: ToolChoice = "none"
    tools_refused: tuple[str, ...] = ()
    schema_refused: tuple[str, ...] = ("schema", "grammar", "response_format", "structured output")
    context: ContextSource = "given"
    context_tokens: int | None = None
    alternating: bool | None = None
    formats: tuple[Format, ...] = ()
    temperature: float | None = None
    tokenizer: bool | Literal["messages"] = False
    prompt_cache: bool = False
    logprobs: bool = False

    def __post_init__(self) -> None:
        """ValueError for what contradicts the rest of the profile, for a wrong address, for options that are none."""
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
        if self.tool_choice != "none" and (spoken.demand is None or not self.native_calls):
            raise ValueError(f'tool_choice = "{self.tool_choice}" needs tools in the request; leave it out')
        asked = ("props", "models") if spoken.lists_models else ("show",) if spoken.sets_context else ()
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
        """Words of an error after which the tools have to stand in the prompt, without a schema."""
        match mode:
            case "native":
                return self.tools_refused + (self.schema_refused if self.constrain == "strict" else ())
            case "constrained":
                return self.schema_refused
            case "prompted":
                return ()

    def dialect(self, context_tokens: int) -> Dialect:
        """How the wire is spoken to this backend; Ollama is told the size of the context, in tokens."""
        return Dialect(
            wire=self.wire,
            constrain=self.constrain,
            tool_choice=self.tool_choice,
            body=self.body,
            tools_body=self.tools_body,
            option_names=self.option_names,
            # Ollama cuts a prompt to its own default context without a word; so it is told what forge counts on.
            context_tokens=context_tokens if WIRES[self.wire].sets_context else None,
            cache=self.prompt_cache,
        )


def to_toml(profile: Profile) -> str:
    """The profile as a TOML file; what is left at its default is left out."""
    return msgspec.toml.encode(profile).decode()


def from_toml(text: str, origin: str = "the profile") -> Profile:
    """The profile in a TOML text. ForgeError with every fault in it; `origin` names it there."""
    return _converted(parse_toml(text, Profile, origin), origin)


def load_profile(path: Path) -> Profile:
    """The profile in a file. ForgeError if it cannot be read or is not valid."""
    return _converted(read_toml(path, Profile, "profile"), str(path))


def _converted(tables: Mapping[str, object], origin: str) -> Profile:
    try:
        return msgspec.convert(tables, Profile)
    except msgspec.ValidationError as error:  # what it says contradicts itself
        raise ForgeError(f"{origin}: {error}") from None


_PROFILES = Path(__file__).with_name("profiles")


@functools.cache
def names() -> tuple[str, ...]:
    """The profiles that ship with forge, in alphabetical order."""
    return tuple(sorted(file.stem for file in _PROFILES.glob("*.toml")))


@functools.cache
def named_profile(name: str) -> Profile:
    """The profile of that name. ForgeError, with the names that there are, for any other."""
    if name not in names():
        meant = did_you_mean(name, names())
        raise ForgeError(f"there is no profile {name!r}; there are: {', '.join(names())}.{meant}")
    text = (_PROFILES / f"{name}.toml").read_text(encoding="utf-8")
    return from_toml(text, f"forge/backends/profiles/{name}.toml")


def given_profile(given: Profile | Path | str | None) -> Profile | None:
    """The profile that is meant by a name, a file or itself. ForgeError if there is none such."""
    match given:
        case None | Profile():
            return given
        case Path():
            return load_profile(given)
        case str() if given.endswith(".toml"):
            return load_profile(Path(given))
        case str():
            return named_profile(given)


# Sampling options that a model's makers recommend: a table, looked up by the model's name, never guessed.


class _Row(Struct, forbid_unknown_fields=True):
    """Models with the same recommendation. `thinks`: they think before they answer.

    `thinking` is what their template is told of how to think.
    """

    names: tuple[str, ...]
    temperature: float
    top_p: float | UnsetType = UNSET
    top_k: int | UnsetType = UNSET
    min_p: float | UnsetType = UNSET
    repeat_penalty: float | UnsetType = UNSET
    presence_penalty: float | UnsetType = UNSET
    thinks: bool = False
    thinking: dict[str, str | bool] = {}

    def sampling(self) -> Sampling:
        return Sampling(
            temperature=self.temperature,
            top_p=self.top_p,
            top_k=self.top_k,
            min_p=self.min_p,
            repeat_penalty=self.repeat_penalty,
            presence_penalty=self.presence_penalty,
            extra={"chat_template_kwargs": self.thinking} if self.thinking else {},
        )


def known_sampling(model: str) -> Sampling | None:
    """What is recommended for the model of that name; None for one that is not in the table."""
    row = _known().get(_plain(model))
    return row.sampling() if row else None


def recommended(model: str) -> Sampling:
    """What is recommended for the model of that name: an Ollama tag, or the name or path of a GGUF file.

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
    """What is asked for where nobody says anything: a low temperature, for calls are copied out, not made up.

    A model that thinks first gets the temperature of its makers, who warn of lower ones: it would repeat itself.
    """
    if temperature is None:
        return Sampling()
    row = _known().get(_plain(model))
    return Sampling(temperature=row.temperature if row and (row.thinks or row.thinking) else temperature)


def low_temperature(profile: Profile, url: str) -> float | None:
    """The temperature that forge asks for by itself; None leaves it to the server.

    A server that is not known, and is reached over https, may be hosted: some of those models take no temperature.
    """
    return None if profile.name == "openai-compatible" and url.startswith("https:") else profile.temperature


def check_sampling(sampling: Sampling, profile: Profile) -> None:
    """ForgeError for a sampling option that the backend does not have."""
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
    """The name without folder, extension, shard number, and upper case; Ollama's tags have no folder but an owner."""
    stem = re.sub(r"\.(gguf|llamafile)$", "", name.replace("\\", "/").rsplit("/", 1)[-1].lower())
    return re.sub(r"-\d{5}-of-\d{5}$", "", stem)
