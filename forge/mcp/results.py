"""Results of MCP tools: what the model is shown of one, as text or as a JSON value."""

import msgspec
from mcp_types import (
    AudioContent,
    BlobResourceContents,
    CallToolResult,
    ContentBlock,
    EmbeddedResource,
    ImageContent,
    ResourceLink,
    TextContent,
    TextResourceContents,
)

from stages.repair.decoding import decode
from stages.schema.value import Json

_PROGRESS = 2_000
"""Maximum characters of one piece of progress."""

_any: msgspec.json.Decoder[Json] = msgspec.json.Decoder()


def value_of(result: CallToolResult) -> Json:
    """What the result says: its JSON value, where it has one that its text only repeats; otherwise text.

    Of pictures, sounds and other bytes the text names only the kind and the size.
    """
    text = "\n".join(map(_text, result.content))
    if result.structured_content is None:
        return text
    value: Json = result.structured_content
    plain = all(isinstance(block, TextContent) for block in result.content)
    if isinstance(value, dict) and value.keys() == {"result"} and plain and text:
        return value["result"]  # the SDK's form of a value that is no object
    return value if not text or _repeats(text, value) else f"{text}\n{msgspec.json.encode(value).decode()}"


def _repeats(text: str, value: Json) -> bool:
    """Whether the text is that value as JSON."""
    try:
        return decode(_any, text) == value
    except msgspec.DecodeError:
        return False


def _text(block: ContentBlock) -> str:
    match block:
        case TextContent():
            return block.text
        case ImageContent() | AudioContent():
            return f"[{block.type}, {block.mime_type}, {_size(block.data)}: not shown]"
        case ResourceLink():
            return f"[resource {block.name}: {block.uri}]"
        case EmbeddedResource(resource=TextResourceContents() as resource):
            return f"[resource {resource.uri}]\n{resource.text}"
        case EmbeddedResource(resource=BlobResourceContents() as resource):
            return f"[resource {resource.uri}, {_size(resource.blob)}: not shown]"
        case _:
            raise TypeError(f"no kind of content: {block!r}")


def _size(data: str) -> str:
    """The size of what is encoded as base64."""
    return f"{len(data) * 3 // 4:,} bytes"


def progress_text(progress: float, total: float | None, message: str | None) -> str:
    """A server's progress, in a line."""
    done = f"{progress:g}" if total is None else f"{progress:g} of {total:g}"
    return f"{done}: {message[:_PROGRESS]}" if message else done
