"""What a user wishes of a backend: its address, profile, mode and options, refused where they make no sense."""

import logging
from pathlib import Path
from typing import Literal, get_args
from urllib.parse import urlsplit

from forge.backends.address import spelt_out, suggested
from forge.backends.profile import Profile, load, named_profile
from forge.backends.recognise import About
from forge.errors import ForgeError
from stages.repair.decoding import is_sound
from stages.serialize import Mode
from stages.wire.sampling import Sampling
from stages.wire.wires import OPENAI, WIRES, wire

DEFAULT_CONTEXT = 4096
"""Tokens of context that are assumed where neither the server nor its profile says how many it has."""

log = logging.getLogger("forge")


def given_profile(given: Profile | Path | str | None) -> Profile | None:
    """The profile that is meant by a name, a file or itself. ForgeError if there is none such."""
    match given:
        case None | Profile():
            return given
        case Path():
            return load(given)
        case str() if given.endswith(".toml"):
            return load(Path(given))
        case str():
            return named_profile(given)


def check_mode(mode: Mode | Literal["auto"], profile: Profile | None) -> None:
    """ForgeError for a mode that the backend has not; while it is not known, for one that none has."""
    if mode not in (*get_args(Mode), "auto"):
        raise ForgeError(f"mode is {mode!r}; it must be one of auto, {', '.join(get_args(Mode))}")
    if profile is None:
        return
    if mode == "native" and not profile.native_calls:
        raise ForgeError(f"the profile {profile.name} has no native calls; choose the mode prompted or constrained")
    if mode == "constrained" and profile.constrain == "none":
        raise ForgeError(f"the profile {profile.name} cannot constrain decoding; choose the mode native or prompted")


def check_options(sampling: Sampling, profile: Profile) -> None:
    """ForgeError for an option that the backend has not."""
    try:
        wire(profile.dialect(DEFAULT_CONTEXT)).head("", sampling, ())
    except ValueError as error:
        raise ForgeError(f"{profile.name}: {error}") from None


def low_temperature(profile: Profile, url: str) -> float | None:
    """The temperature that forge asks for by itself; None leaves it to the server.

    A server that is not known, and is reached over https, may be hosted: some of those models take no temperature.
    """
    return None if profile.name == "openai-compatible" and url.startswith("https:") else profile.temperature


def chosen(mode: Mode | Literal["auto"], profile: Profile, about: About) -> Mode:
    """How tool calls are asked for: as the user says, else as the profile does, where the model's template lets it."""
    if mode != "auto":
        return mode
    if profile.mode == "native" and about.props and about.props.chat_template_caps.get("supports_tools") is False:
        log.warning("the model's chat template has no tools, so the server would ignore them; the mode is prompted")
        return "prompted"
    return profile.mode


def base(url: str, profile: Profile | None) -> str:
    """The address that the wire's path is appended to: a bare host gets the protocol's own `/v1`, where it has one.

    ForgeError for what is no address, without showing what may be a password in it.
    """
    given = spelt_out(url or (profile.url if profile else ""))
    try:
        parts = urlsplit(given)
        right = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0 and is_sound(given)
    except ValueError:  # brackets that don't close, a port that is no number or too large
        right = False
        parts = urlsplit("")
    if "@" in given:
        raise ForgeError("the server's address holds a user name or a password; pass api_key or headers instead")
    if not right:
        raise ForgeError(f"{given!r} is no server's address; write it like http://127.0.0.1:8080.{suggested(given)}")
    if parts.query or parts.fragment:
        raise ForgeError("the server's address has a part after '?' or '#'; leave it out, and pass keys as headers")
    protocol = WIRES[profile.wire] if profile else OPENAI
    trimmed = given.rstrip("/").removesuffix(protocol.path)
    return trimmed if parts.path.strip("/") or protocol.at_root else f"{trimmed}/v1"


def is_here(url: str) -> bool:
    """Whether the address is this machine's own, so that a proxy named in the environment does not lead there."""
    host = urlsplit(url).hostname or ""
    return host in {"localhost", "::1"} or host.startswith("127.")
