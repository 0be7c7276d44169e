"""Names of servers' tools for a model: legal everywhere, and one for each."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from hashlib import sha256
from itertools import chain

_LONGEST = 64
_ILLEGAL = re.compile(r"[^A-Za-z0-9_-]")
_DIGEST = 6


def local_names(tools: Mapping[str, Sequence[str]]) -> dict[str, dict[str, str]]:
    """By server, and by the server's own names: what a model calls its tools, `SERVER_TOOL`.

    A character that no name may have becomes `_`. Where that makes two names the same, or one too long, each of them
    ends in a digest of the server's own name.
    """
    plain = {server: {name: _ILLEGAL.sub("_", f"{server}_{name}") for name in names} for server, names in tools.items()}
    shared = Counter(chain.from_iterable(names.values() for names in plain.values()))
    return {
        server: {
            name: short if shared[short] == 1 and len(short) <= _LONGEST else _marked(short, f"{server} {name}")
            for name, short in names.items()
        }
        for server, names in plain.items()
    }


def _marked(short: str, name: str) -> str:
    digest = sha256(name.encode(errors="surrogatepass")).hexdigest()[:_DIGEST]
    return f"{short[: _LONGEST - _DIGEST - 1]}_{digest}"
