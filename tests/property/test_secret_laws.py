"""Laws of hiding: whatever the secret, and however it is written, it is not in what is shown, nor is a part of it."""

import base64
import html
import json
import shlex
from collections.abc import Callable
from urllib.parse import quote, quote_plus

from hypothesis import given
from hypothesis import strategies as st

from forge.masking import Hidden, MaskedPieces, undone
from stages.wire.deltas import CallStarted, Ended, ReasoningDelta, TextDelta

FORMS: dict[str, Callable[[str], str]] = {
    "as it is": str,
    "in JSON": lambda text: json.dumps(text, ensure_ascii=False),
    "in ASCII JSON": json.dumps,
    "in JSON in JSON": lambda text: json.dumps(json.dumps(text)),
    "with every character escaped": lambda text: "".join(f"\\u{ord(c):04x}" if ord(c) < 65536 else c for c in text),
    "with slashes escaped": lambda text: json.dumps(text).replace("/", "\\/"),
    "quoted": quote,
    "quoted, slashes too": lambda text: quote(text, safe=""),
    "quoted in lower case": lambda text: quote(text, safe="").replace("%2F", "%2f").replace("%2B", "%2b"),
    "quoted with plus": quote_plus,
    "quoted whole": lambda text: "".join(f"%{byte:02x}" for byte in text.encode()),
    "quoted twice": lambda text: quote(quote(text, safe=""), safe=""),
    "in HTML": html.escape,
    "in Python": repr,
    "in ASCII Python": ascii,
    "in Python's bytes": lambda text: repr(text.encode()),
    "in Python in JSON": lambda text: json.dumps({"error": ascii(text)}),
    "in a shell": shlex.quote,
    "in JSON in a URL": lambda text: quote(json.dumps(text)),
}
BASE64 = [base64.b64encode, base64.urlsafe_b64encode]
SECRETS = st.text(st.characters(codec="utf-8"), min_size=6, max_size=40).map(str.strip).filter(lambda t: len(t) >= 6)
AROUND = st.text(st.characters(codec="utf-8"), max_size=12)


def seen(secret: str, shown: str) -> bool:
    """Whether somebody who looks closely finds the secret there; `***` is not one, nor what it is in."""
    return secret in shown or secret in undone(shown)


@given(secret=SECRETS, before=AROUND, after=AROUND, form=st.sampled_from([*FORMS]))
def test_a_secret_is_not_shown_however_it_is_written(secret: str, before: str, after: str, form: str) -> None:
    hidden = Hidden([secret])
    for shown in (
        hidden.without(f"{before}{FORMS[form](secret)}{after}"),
        hidden.without(FORMS[form](before + secret)),
    ):
        assert not seen(secret, shown.replace("***", "\0"))


@given(secret=SECRETS, before=st.binary(max_size=7), after=st.binary(max_size=7), encode=st.sampled_from(BASE64))
def test_a_secret_in_base64_is_not_shown_wherever_it_begins(
    secret: str, before: bytes, after: bytes, encode: Callable[[bytes], bytes]
) -> None:
    whole = encode(before + secret.encode() + after).decode()
    shown = Hidden([secret]).without(f"key {whole}.")
    assert whole not in shown
    kept = shown.removeprefix("key ").removesuffix(".")
    assert len(kept.replace("***", "")) <= len(whole) - len(secret.encode()) * 8 // 6 + 2


@given(secret=SECRETS, before=st.integers(0, 60), limit=st.integers(0, 80), form=st.sampled_from([*FORMS]))
def test_a_cut_in_the_middle_of_a_secret_shows_no_part_of_it(secret: str, before: int, limit: int, form: str) -> None:
    hidden = Hidden([secret])
    body = ("~" * before + FORMS[form](secret) + "~" * 20).encode()
    shown = hidden.cut_after(body, limit).decode(errors="replace").replace("***", "")
    assert {*shown} <= {"~", "*", "\ufffd", *FORMS[form]("")}


@given(secret=SECRETS, cut=st.integers(4, 40))
def test_the_beginning_of_a_secret_at_the_end_of_a_text_is_not_shown(secret: str, cut: int) -> None:
    shown = Hidden([secret]).without_end(f"~~~{secret[:cut]}")
    assert shown.startswith("~~~***") or "~" in secret


@given(secret=SECRETS, before=AROUND, after=AROUND, form=st.sampled_from(["as it is", "quoted"]), data=st.data())
def test_a_secret_in_a_stream_is_not_shown_wherever_the_stream_is_cut(
    secret: str, before: str, after: str, form: str, data: st.DataObject
) -> None:
    text, pieces = before + FORMS[form](secret) + after, list[str]()
    while text:
        cut = data.draw(st.integers(1, len(text)))
        pieces, text = [*pieces, text[:cut]], text[cut:]
    masked = MaskedPieces(Hidden([secret]))
    for kind in (TextDelta, ReasoningDelta):
        parts = (*(kind(text=part) for part in pieces), CallStarted(index=0), Ended())
        told = [one for part in parts for one in masked.shown(part)]
        assert not seen(secret, "".join(one.text for one in told if isinstance(one, kind)).replace("***", "\0"))
        assert [type(one) for one in told[-2:]] == [CallStarted, Ended]


@given(text=st.text(), secret=SECRETS)
def test_a_text_without_the_secret_is_left_as_it_is(text: str, secret: str) -> None:
    hidden = Hidden([secret])
    if text not in hidden and undone(text) not in hidden:
        assert hidden.without(text) == text
