"""Profiles that probes found, cached in the user's folder for a week, so that a server is not asked at each run."""

import hashlib
import logging
import os
from datetime import UTC, datetime, timedelta
from importlib.metadata import version
from pathlib import Path

import msgspec
from msgspec import Struct
from platformdirs import user_cache_path

from forge.backends.profile import Profile

FRESH = timedelta(days=7)
"""How long what was found counts; a server may be changed behind its address."""


class Subject(Struct, frozen=True, kw_only=True):
    """What a profile was found for. `build` is what the server says of itself as it is connected to."""

    url: str
    model: str
    build: str = ""


class _Kept(Struct, kw_only=True, forbid_unknown_fields=True):
    url: str
    model: str
    forge: str
    found: datetime
    profile: Profile


def folder() -> Path:
    """Where the profiles are kept; deleting it makes forge ask again."""
    return user_cache_path("forge") / "profiles"


def recall(subject: Subject) -> Profile | None:
    """The profile that was found for this subject; None if there is none, or it is too old, or of another forge."""
    try:
        kept = msgspec.json.decode(_file(subject).read_bytes(), type=_Kept)
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:  # msgspec's errors are ValueErrors
        logging.getLogger("forge").warning("%s cannot be read (%s); the server is asked again", _file(subject), error)
        return None
    fresh = timedelta() <= datetime.now(UTC) - kept.found < FRESH
    return kept.profile if fresh and kept.forge == version("forge-toolcalls") else None


def remember(subject: Subject, profile: Profile) -> None:
    """Keep the profile. A folder that cannot be written to is said in the log: forge only asks again."""
    kept = _Kept(
        url=subject.url,
        model=subject.model,
        forge=version("forge-toolcalls"),
        found=datetime.now(UTC),
        profile=profile,
    )
    file = _file(subject)
    part = file.with_suffix(f".{os.getpid()}.part")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        part.write_bytes(msgspec.json.format(msgspec.json.encode(kept)))
        part.replace(file)
    except OSError as error:
        logging.getLogger("forge").warning("the profile cannot be kept in %s: %s", file, error)


def _file(subject: Subject) -> Path:
    return folder() / f"{hashlib.sha256(msgspec.json.encode(subject)).hexdigest()[:32]}.json"
