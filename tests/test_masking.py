"""Masking: what is taken out of texts, bodies, faults and replies, and what is left alone."""

import pytest

from forge.masking import MINIMUM_IN_REPLIES, NOTHING, Hidden, MaskedPieces, masked_fault, masked_reply
from stages.effect import Fault, RawCall, Reply, TokenProbability
from stages.wire.deltas import CallDelta, CallStarted, Ended, Piece, ReasoningDelta, TextDelta

KEY = "sk-very-secret-1"


def test_the_longer_of_two_secrets_is_masked_first() -> None:
    hidden = Hidden(["sk-secret", "sk-secret-longer", "", "1"])
    assert [hidden.without(text) for text in ("1 key sk-secret-longer", "sk-secret.")] == ["1 key ***", "***."]


@pytest.mark.parametrize(("minimum", "left"), [(6, False), (MINIMUM_IN_REPLIES, True)])
def test_a_short_secret_is_left_where_it_may_be_an_ordinary_word(minimum: int, left: bool) -> None:
    assert ("ollama" in Hidden(["ollama"], minimum=minimum).without("ollama is running")) == left


def test_a_fault_loses_the_secret_and_the_beginning_of_one_where_it_was_cut() -> None:
    fault = Fault(kind="status", detail=f"no entry with {KEY}", body=f"{{}} {KEY[:7]}")
    assert masked_fault(fault, Hidden([KEY])) == Fault(kind="status", detail="no entry with ***", body="{} ***")
    assert masked_fault(fault, NOTHING) is fault


def test_a_reply_loses_the_secret_in_every_field() -> None:
    call = RawCall(id=KEY, name=KEY, arguments=KEY)
    tokens = (TokenProbability("sk-very-", -1.0), TokenProbability("secret-1", -1.0))
    reply = Reply(text=KEY, reasoning=KEY, sealed=KEY, calls=(call,), finish=KEY, tokens=tokens)
    masked = masked_reply(reply, Hidden([KEY]))
    assert KEY not in repr(masked)
    assert masked.tokens == ()  # together they spell it
    assert masked.calls == (RawCall(id="***", name="***", arguments="***"),)


def test_a_stream_loses_the_secret_and_shows_the_rest_as_soon_as_it_can() -> None:
    masked = MaskedPieces(Hidden([KEY]))
    pieces: list[tuple[Piece, list[Piece]]] = [
        (TextDelta(text="key sk-very"), [TextDelta(text="key ")]),  # it may be the secret's beginning
        (TextDelta(text="-secret-1, s"), [TextDelta(text="***, ")]),
        (ReasoningDelta(text="hm"), [TextDelta(text="s"), ReasoningDelta(text="hm")]),
        (CallStarted(index=0, name=KEY, id=KEY), [CallStarted(index=0, name="***", id="***")]),
        (CallDelta(index=0, arguments='{"a":"sk-very-'), [CallDelta(index=0, arguments='{"a":"')]),
        (CallDelta(index=0, arguments='secret-1"}'), [CallDelta(index=0, arguments='***"}')]),
        (CallDelta(index=0, arguments="sk-very"), []),
        (CallDelta(index=1, arguments="{}"), [CallDelta(index=1, arguments="{}")]),
        (CallDelta(index=0, arguments="-secret-1"), [CallDelta(index=0, arguments="***")]),
        (Ended(tokens=(TokenProbability("sk-very-", -1.0), TokenProbability("secret-1", -1.0))), [Ended()]),
    ]
    for piece, shown in pieces:
        assert [*masked.shown(piece)] == shown


@pytest.mark.parametrize(
    ("body", "shown"),
    [(b'{"key":"sk-very-secret-1"}', b'{"key":"***"}'), (b"cut at sk-very", b"cut at ***"), (b"\xff{}", b"\xff{}")],
)
def test_the_body_of_an_answer_is_masked_and_otherwise_kept_byte_for_byte(body: bytes, shown: bytes) -> None:
    assert Hidden([KEY]).without_bytes(body) == shown
