"""Errors for clients: a backend's own, passed on where possible, and forge's."""

import msgspec
from msgspec import Raw, Struct

from forge.errors import quantity
from forge.proxy.upstream import Refusal
from stages.decoding import decode_or
from stages.wire.faults import error_message
from stages.wire.server.errors import RequestError, WireAnswer, error_of, headers_of, too_long
from stages.wire.server_wires import ServerWire


class _Body(Struct):
    error: Raw = Raw(b"null")
    type: str = ""


_WRONG_MODEL = (400, 404, 422)
"""Statuses with which servers refuse an unknown model."""

_body = msgspec.json.Decoder(_Body)


def refusal_answer(wire: ServerWire, refusal: Refusal, *, same: bool) -> WireAnswer:
    """The answer for a fault before anything was sent: the backend's own body if the client reads its protocol."""
    error = request_error(refusal)
    own = same and bool(refusal.raw) and refusal.fault.status is not None and not error.code
    if own and _is_error(refusal.raw, wire):
        return WireAnswer(status=error.status, body=refusal.raw, headers=headers_of(error))
    return wire.encode_error(error)


def nothing_usable(attempts: int) -> RequestError:
    """The error for a turn whose attempts all failed, the last with an empty reply. A client's retry would not help."""
    said = f"the model gave no usable reply in {quantity(attempts, 'attempt')}"
    return RequestError(message=said, status=502, code="no_usable_reply", retriable=False)


def request_error(refusal: Refusal) -> RequestError:
    """The client's error for a refusal, with the backend's message if there is one."""
    fault, overflow = refusal.fault, refusal.overflow
    error, words = error_of(fault), error_message(fault.body)
    if overflow is None:
        return msgspec.structs.replace(error, message=words or error.message)
    told = too_long(overflow.tokens, overflow.maximum, at_least=overflow.at_least)
    # Ollama reports no numbers; and a prompt below the maximum may be too long together with the requested reply.
    plain = overflow.tokens > overflow.maximum > 0
    return told if plain else msgspec.structs.replace(told, message=f"prompt is too long: {words}")


def naming_a_model(refusal: Refusal) -> Refusal:
    """The refusal with advice on naming a model, if it is about an unknown model."""
    fault = refusal.fault
    words = error_message(fault.body) or fault.detail
    if fault.status not in _WRONG_MODEL or "model" not in words.lower():
        return refusal
    how = "The server lists no models; name the right one in the client, or start forge proxy with --model NAME"
    return Refusal(msgspec.structs.replace(fault, detail=f"{words}. {how}", body=""))


def _is_error(raw: bytes, wire: ServerWire) -> bool:
    """Whether the body is an error in that protocol; some Anthropic-compatible servers write OpenAI's."""
    if (found := decode_or(_body, raw, None)) is None:
        return False
    return bytes(found.error).startswith(b"{") and (wire.name != "messages" or found.type == "error")
