"""Tokens: the size of a text in a prompt, estimated from its characters and calibrated by what servers report.

The unit of an estimate is the character of plain prose; digits, punctuation and foreign scripts count as several.
Estimates add up, so sums can be kept: `length(a + b) == length(a) + length(b)`. Calibration is a value: a rate of
tokens per character, and the last report.
"""

from string import ascii_uppercase, digits, punctuation
from zlib import adler32

from msgspec import Struct

STARTING_RATE = 0.25
"""Tokens per character before anything is known. Most texts take 0.15 to 0.2, of any kind; the rest is a margin."""

_LOWEST, _HIGHEST = 0.05, 1.0
"""Minimum and maximum rate that is believed; a report that implies another rate is ignored."""

_PREAMBLE = 2000
"""Tokens that a server may add to a prompt, without forge knowing, and still be believed."""

_FALL = 0.3
"""How far the rate follows a lower one: it rises at once and falls slowly, to stay on the safe side."""

_STEADY = 200
"""Characters that make half of a step: a few more characters say little about a rate."""

_REMOVED = 0.75
"""Share of its size by which text removed from a prompt counts, until the next report: again on the safe side."""

# How many tokens a byte of UTF-8 makes, in characters of prose: fitted to Qwen2.5, SmolLM2, DeepSeek, cl100k, Tekken,
# Mistral 3 and Claude 2 over prose, code, JSON, tables, logs and 31 languages (benchmarks/TOKENS.md).
_KINDS: tuple[tuple[bytes | range, int], ...] = (
    (f"{punctuation}\t\n\r".encode(), 3),
    (f"{digits}{ascii_uppercase}".encode(), 6),  # most small models read numbers digit by digit
    (range(0xC2, 0xC6), 12),  # letters with accents break a word in two or three
    (range(0xC6, 0xD0), 4),
    (range(0xD0, 0xD4), 3),  # Cyrillic
    (range(0xD4, 0xD8), 5),  # Armenian, Hebrew
    (range(0xD8, 0xE0), 3),  # Arabic
    (range(0xE0, 0xE4), 4),  # scripts of South Asia, symbols, kana
    (range(0xE4, 0xF0), 5),  # Chinese characters, Hangul
    (range(0xF0, 0x100), 12),  # emoji
)


def _weights() -> bytes:
    weights = bytearray(b"\x01" * 256)
    for members, weight in _KINDS:
        for byte in members:
            weights[byte] = weight
    return bytes(weights)


WEIGHTS = _weights()
SUM_CHUNK = 4096
"""Bytes that are summed at a time: with weights up to 15 the sum stays below 65,521, the limit of Adler-32."""


def length(text: str) -> int:
    """Size of a text in a prompt, in characters of plain prose. Linear, without a loop in Python below 4 kB."""
    # Halves of surrogate pairs have no UTF-8 of their own; here they only have to be counted.
    weighed = text.encode("utf-8", "surrogatepass").translate(WEIGHTS)
    if len(weighed) <= SUM_CHUNK:
        # The low half of an Adler-32 that begins with 0 is the sum of the bytes: the quickest sum that Python has.
        return adler32(weighed, 0) & 0xFFFF
    return sum(adler32(weighed[start : start + SUM_CHUNK], 0) & 0xFFFF for start in range(0, len(weighed), SUM_CHUNK))


def fitting_length(text: str, most: int) -> int:
    """How many of the text's first characters take no more than `most`. Linear, as the halves shrink."""
    low, high = 0, len(text)
    while low < high:
        middle = (low + high + 1) // 2
        part = length(text[low:middle])
        if part <= most:
            low, most = middle, most - part
        else:
            high = middle - 1
    return low


class Report(Struct, frozen=True, kw_only=True):
    """What a server reported of a prompt: `tokens` for `characters`, by `length`. 0 tokens: no report yet."""

    characters: int = 0
    tokens: int = 0


def tokens_of(characters: int, rate: float, report: Report) -> int:
    """Tokens of a prompt of this size, rounded up: the last report's, and the difference at `rate`."""
    more = characters - report.characters
    exact = report.tokens + more * (rate if more >= 0 or not report.tokens else rate * _REMOVED)
    return max(0, int(exact)) + 1


def characters_of(tokens: int, rate: float, report: Report) -> int:
    """Size of the longest prompt estimated to take no more than `tokens`; may be negative."""
    more = tokens - 1 - report.tokens
    found = report.characters + int(more / (rate if more >= 0 or not report.tokens else rate * _REMOVED))
    # A division rounds; the estimate is what decides.
    while tokens_of(found, rate, report) > tokens and found > 0:
        found -= 1
    return found


def calibrated(rate: float, last: Report, new: Report, history: int) -> tuple[float, Report]:
    """Rate and report after another report. `history` is the part of the new prompt's size that is messages.

    A template need not show the tools, so they may take less than estimated; messages are always shown. A report that
    is too small for the messages, or smaller than the last one although the prompt has grown, is ignored: some servers
    count only what they had not cached.
    """
    if not history * _LOWEST <= new.tokens <= new.characters * _HIGHEST + _PREAMBLE or new.tokens <= 0:
        return rate, last
    more = new.characters - last.characters
    if not last.tokens or more < 0:
        return rate, new
    if new.tokens < last.tokens:
        return rate, last
    return _followed(rate, more, new.tokens - last.tokens), new


def _followed(rate: float, characters: int, tokens: int) -> float:
    """The rate after `characters` took `tokens`: weighted by how many, and rising faster than falling."""
    if not characters:
        return rate
    seen = min(_HIGHEST, max(_LOWEST, tokens / characters))
    return rate + (1 if seen > rate else _FALL) * (seen - rate) * characters / (characters + _STEADY)


def rate_of(tokens: int, characters: int) -> float:
    """The starting rate, from what a tokenizer makes of a sample: a quarter more, as other texts may take more."""
    return min(_HIGHEST, max(_LOWEST, 1.25 * tokens / characters)) if characters else STARTING_RATE


def whole_rate(rate: float, report: Report) -> float:
    """Tokens per character of the whole last prompt, if a server has reported it; else the rate."""
    return report.tokens / report.characters if report.tokens and report.characters else rate
