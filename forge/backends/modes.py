"""The mode of asking for tool calls: refused where a backend does not have it, chosen where the user leaves it open."""

import logging
from typing import Literal, get_args

from forge.backends.profile import Profile
from forge.backends.recognition import About
from forge.errors import ForgeError
from stages.serialize import Mode

_log = logging.getLogger("forge")


def check_mode(mode: Mode | Literal["auto"], profile: Profile | None) -> None:
    """ForgeError for a mode that the backend does not support; of no backend at all, while it is not known."""
    if mode not in (*get_args(Mode), "auto"):
        raise ForgeError(f"mode is {mode!r}; it must be one of auto, {', '.join(get_args(Mode))}")
    if profile is None:
        return
    if mode == "native" and not profile.native_calls:
        raise ForgeError(f"the profile {profile.name} has no native calls; choose the mode prompted or constrained")
    if mode == "constrained" and profile.constrain == "none":
        raise ForgeError(f"the profile {profile.name} cannot constrain decoding; choose the mode native or prompted")


def chosen_mode(mode: Mode | Literal["auto"], profile: Profile, about: About) -> Mode:
    """How tool calls are asked for: as the user says, else as the profile does, where the model's template lets it."""
    if mode != "auto":
        return mode
    if profile.mode == "native" and about.template_has_tools is False:
        _log.warning("the model's chat template has no tools, so the server would ignore them; the mode is prompted")
        return "prompted"
    return profile.mode
