"""The official Anthropic SDK as an httpx transport: `Http` sends its requests through it, with the SDK's credentials.

Retries, faults, streams and limits remain forge's, and any client of the SDK works, including those for Bedrock and
Vertex. The SDK is imported only here, at its first use, because that takes a second.
"""

from collections.abc import AsyncIterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import httpx
import msgspec

from forge import observation
from forge.errors import ForgeError, to_install

if TYPE_CHECKING:
    from collections.abc import Iterator

    import httpx2
    from anthropic import APIRequest, AsyncAnthropic, AsyncAPIResponse, AsyncCallNext, RequestOptions

_UNREAD: "RequestOptions" = {"headers": {"X-Stainless-Raw-Response": "stream", "accept-encoding": "identity"}}
"""Makes the SDK return a response before reading its body."""


def sdk_client(api_key: str, base_url: str) -> "AsyncAnthropic":
    """The SDK's client; without a key, the SDK looks in its usual places. ForgeError if it is not installed."""
    try:
        from anthropic import AnthropicError, AsyncAnthropic  # noqa: PLC0415 - an extra, and slow to import
    except ImportError:
        raise ForgeError(
            f"the Anthropic SDK is not installed here; {to_install('anthropic')}, "
            'or use it without the SDK: Server("https://api.anthropic.com", profile="anthropic", model=…)'
        ) from None
    try:
        return AsyncAnthropic(api_key=api_key or None, base_url=base_url or None)
    except (AnthropicError, ValueError) as error:
        raise ForgeError(f"the Anthropic SDK cannot be set up: {error}") from None


class ThroughSdk(httpx.AsyncBaseTransport):
    """Sends each request through the SDK once: its retries are off, because they would multiply with forge's."""

    def __init__(self, sdk: "AsyncAnthropic") -> None:
        self._sdk = sdk.with_options(max_retries=0, middleware=[_raise_unread, *sdk.middleware])

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """The response, whatever its status. Raises httpx's exceptions for failed connections."""
        from anthropic import AsyncAPIResponse  # noqa: PLC0415

        # The SDK adds its own base path; some of its clients put the model into it, too.
        path = request.url.path.removeprefix(self._sdk.base_url.path.rstrip("/"))
        raw = AsyncAPIResponse[object]
        try:
            with _as_httpx(request):
                if request.method == "GET":
                    answer = (await self._sdk.get(path, cast_to=raw, options=_UNREAD)).http_response
                else:
                    body: dict[str, object] = msgspec.json.decode(await request.aread())
                    options: RequestOptions = {"headers": {**_UNREAD["headers"], **observation.outgoing()}}
                    answer = (await self._sdk.post(path, body=body, cast_to=raw, options=options)).http_response
        except _ErrorStatus as refused:
            answer = refused.response
        return httpx.Response(answer.status_code, headers=answer.headers.multi_items(), stream=_Body(answer, request))


class _ErrorStatus(Exception):  # noqa: N818 - nothing has gone wrong yet
    """A response with an error status, its body still to be read."""

    def __init__(self, response: "httpx2.Response") -> None:
        super().__init__(response.status_code)
        self.response = response


async def _raise_unread(request: "APIRequest", call_next: "AsyncCallNext") -> "AsyncAPIResponse[object]":
    """The response if it is a success. The SDK would read and decompress a whole error body, so it never sees one."""
    response: AsyncAPIResponse[object] = await call_next(request)
    if not response.http_response.is_success:
        raise _ErrorStatus(response.http_response)
    return response


class _Body(httpx.AsyncByteStream):
    """The body of a response, streamed."""

    def __init__(self, answer: "httpx2.Response", request: httpx.Request) -> None:
        self._answer = answer
        self._request = request

    async def __aiter__(self) -> AsyncIterator[bytes]:
        """The raw bytes, not decompressed."""
        with _as_httpx(self._request):
            async for chunk in self._answer.aiter_raw():
                yield chunk

    async def aclose(self) -> None:
        """Close or release the connection."""
        await self._answer.aclose()


@contextmanager
def _as_httpx(request: httpx.Request) -> "Iterator[None]":
    """Turn connection errors of the SDK into httpx's exceptions."""
    import httpx2  # noqa: PLC0415
    from anthropic import AnthropicError, APIConnectionError, APITimeoutError  # noqa: PLC0415

    try:
        yield
    except (APITimeoutError, httpx2.TimeoutException) as error:
        raise httpx.ReadTimeout(str(error), request=request) from error
    except APIConnectionError as error:
        raise httpx.ConnectError(str(error.__cause__ or error), request=request) from error
    except httpx2.HTTPError as error:
        raise httpx.ReadError(str(error), request=request) from error
    except (AnthropicError, TypeError) as error:
        # Without a credential, the SDK raises a TypeError that says where it looked.
        raise ForgeError(f"the Anthropic SDK refuses to send: {error}") from None
