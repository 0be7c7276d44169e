"""The official Anthropic SDK as a transport of httpx: what `Http` sends goes out through it, credentials and all.

So retries, faults, streams and limits are forge's own, and any client of the SDK's will do, those of Bedrock and
Vertex among them. The SDK is imported here alone, when it is first used: that takes a second.
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
"""Has the SDK hand over a response before its body has come."""


def sdk_client(api_key: str, base_url: str) -> "AsyncAnthropic":
    """The SDK's own client; without a key it looks where it always does. ForgeError where it is not installed."""
    try:
        from anthropic import AnthropicError, AsyncAnthropic  # noqa: PLC0415 - an extra, and slow to import
    except ImportError:
        raise ForgeError(
            f"the Anthropic SDK is not installed here; {to_install('anthropic')}, "
            'or do without it: Server("https://api.anthropic.com", profile="anthropic", model=…)'
        ) from None
    try:
        return AsyncAnthropic(api_key=api_key or None, base_url=base_url or None)
    except (AnthropicError, ValueError) as error:
        raise ForgeError(f"the Anthropic SDK cannot be set up: {error}") from None


class ThroughSdk(httpx.AsyncBaseTransport):
    """Sends each request through that client, once: its own retries are off, for forge's would multiply them."""

    def __init__(self, sdk: "AsyncAnthropic") -> None:
        self._sdk = sdk.with_options(max_retries=0, middleware=[_raise_unread, *sdk.middleware])

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """The response, whatever its status. Raises what httpx would for a connection that fails."""
        from anthropic import AsyncAPIResponse  # noqa: PLC0415

        # The client's own address stands before the path; some of its kinds put the model and more into it.
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
    """The response, if it is a success. The SDK would read and unpack all of an error, so it never sees one."""
    response: AsyncAPIResponse[object] = await call_next(request)
    if not response.http_response.is_success:
        raise _ErrorStatus(response.http_response)
    return response


class _Body(httpx.AsyncByteStream):
    """The body of a response as it comes."""

    def __init__(self, answer: "httpx2.Response", request: httpx.Request) -> None:
        self._answer = answer
        self._request = request

    async def __aiter__(self) -> AsyncIterator[bytes]:
        """Bytes as they came: who reads them decides what becomes of a packed body."""
        with _as_httpx(self._request):
            async for chunk in self._answer.aiter_raw():
                yield chunk

    async def aclose(self) -> None:
        """Close the connection, or give it back."""
        await self._answer.aclose()


@contextmanager
def _as_httpx(request: httpx.Request) -> "Iterator[None]":
    """What the SDK, or what it stands on, raises of a connection, as httpx would."""
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
        # Without any credential the SDK raises a TypeError that says what it looked for.
        raise ForgeError(f"the Anthropic SDK refuses to send: {error}") from None
