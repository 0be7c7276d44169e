"""Bodies of requests with some fields changed, and the others as their client wrote them. Pure."""

from collections.abc import Mapping

import msgspec
from msgspec import Raw
from msgspec.structs import replace

from stages.wire.served import ServerRequest, fields


def with_fields(request: ServerRequest, changes: Mapping[str, object]) -> ServerRequest:
    """The request with these fields in its body; None takes one out. The blanks between fields are lost."""
    left = {name: raw for name, raw in fields(request).items() if changes.get(name, raw) is not None}
    added = {name: Raw(msgspec.json.encode(value)) for name, value in changes.items() if value is not None}
    return replace(request, body=msgspec.json.encode(left | added))
