"""Credentials: at most one, only sent to the address that it is for, never shown."""

import os
import re
from base64 import b64decode
from collections.abc import Mapping
from urllib.parse import urlsplit

from forge.backends.profile import Profile
from forge.errors import ForgeError
from forge.masking import MINIMUM_IN_REPLIES, Hidden

HEADERS = frozenset({"authorization", "x-api-key", "api-key"})
"""Headers that carry a credential."""

_TOKEN = re.compile(r"[\x21-\x7e]+")
_VALUE = re.compile(r"[\x20-\x7e\t]*")
_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")


def headers_for(url: str, profile: Profile, api_key: str, own: Mapping[str, str]) -> dict[str, str]:
    """The headers of every request to `url`: the profile's, the key if there is one, and the user's own.

    Without `api_key` and without a credential in the user's headers, the profile's `key_env` is read, but only if `url`
    is the profile's own address: a key for one host is never sent to another. ForgeError for two credentials, and for a
    key or header that cannot be sent; the message never shows it.
    """
    wrong = [name for name, value in own.items() if not (_NAME.fullmatch(name) and _VALUE.fullmatch(value))]
    if wrong:
        raise ForgeError(f"the header {wrong[0]!r} cannot be sent: it or its value holds characters that none can")
    tokens = {n: re.sub(r"^(bearer|basic)\b", "", v.strip(), flags=re.IGNORECASE).strip() for n, v in own.items()}
    carried = [name for name, token in tokens.items() if token and name.lower() in HEADERS | {profile.key_header}]
    if len(carried) + bool(api_key.strip()) > 1:
        given = [*(["api_key"] if api_key.strip() else []), *(f"the header {name}" for name in carried)]
        host = urlsplit(url).hostname or "the server"
        raise ForgeError(f"there are two credentials for {host}: {' and '.join(given)}; leave one out")
    key = api_key.strip()
    if not key and not carried and profile.key_env and profile.url and origin(url) == origin(profile.url):
        key = os.environ.get(profile.key_env, "").strip()
    if key and not _TOKEN.fullmatch(key):
        raise ForgeError("the API key holds spaces or characters that no header can carry; copy it once more")
    # Most servers refuse a blank credential.
    kept = {n.lower(): v for n, v in own.items() if n.lower() not in HEADERS or n in carried}
    written = f"Bearer {key}" if profile.key_header == "authorization" else key
    return {**profile.headers, **({profile.key_header: written} if key else {}), **kept}


def origin(url: str) -> tuple[str, str | None, int | None]:
    """Scheme, host and port: who receives a request."""
    parts = urlsplit(url)
    return parts.scheme, parts.hostname, parts.port or {"http": 80, "https": 443}.get(parts.scheme)


def secrets(headers: Mapping[str, str], profile: Profile) -> Hidden:
    """Secrets to mask in errors: header values that are not the profile's own, and their last words."""
    own = [value for name, value in headers.items() if profile.headers.get(name) != value]
    return Hidden(part for value in own for part in _parts(value))


def keys(headers: Mapping[str, str], key_header: str = "authorization") -> Hidden:
    """Secrets to mask in replies: credentials that are too long to be an ordinary word."""
    own = [value for name, value in headers.items() if name.lower() in HEADERS | {key_header}]
    return Hidden((part for value in own for part in _parts(value)), minimum=MINIMUM_IN_REPLIES)


def _parts(value: str) -> tuple[str, ...]:
    """A header's value, its last word, and for Basic authentication the decoded user and password."""
    word = value.rsplit(" ", 1)[-1]
    if not value.lower().startswith("basic "):
        return value, word
    try:
        plain = b64decode(word).decode()
    except ValueError:
        return value, word
    return value, word, plain, plain.partition(":")[2]
