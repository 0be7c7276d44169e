"""Tokens: what a text takes in a prompt, estimated by its kinds of characters, and calibrated by what a server reports.

The unit of an estimate is the character of plain prose; digits, punctuation and foreign scripts count as several.
The sum is additive, so sums can be kept: `length(a + b) == length(a) + length(b)`. Calibration is a value: a rate of
tokens a character, and the last report.
"""

from string import ascii_uppercase, digits, punctuation
from zlib import adler32

from msgspec import Struct

STARTING_RATE = 0.25
"""Tokens a character before anything is known. Most texts take 0.15 to 0.2, of any kind; the rest is for safety."""

_LOWEST, _HIGHEST = 0.05, 1.0
"""The rates that are believed: a third of what a text takes, and six times. A report that implies others is none."""

_PREAMBLE = 2000
"""Tokens that a server may add to a prompt without our knowing, and be believed."""

_FALL = 0.3
"""How far the rate follows a lower one: it rises at once and falls slowly, to the safe side."""

_STEADY = 200
"""Characters that make half of a step: what is added by a few tells little of a rate."""

_REMOVED = 0.75
"""What is taken out of a prompt counts as so much of its size, until a report says more: to the safe side again."""

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
"""Bytes that are summed at a time: with weights up to 15, their sum stays under 65,521, below which Adler-32 has it."""


def length(text: str) -> int:
    """What a text takes in a prompt, in characters of plain prose. Linear, without a loop in Python below 4 kB."""
    # Halves of surrogate pairs have no UTF-8 of their own; here they only have to be counted.
    weighed = text.encode(errors="surrogatepass").translate(WEIGHTS)
    if len(weighed) <= SUM_CHUNK:
        # The low half of an Adler-32 that begins with 0 is the sum of the bytes: the quickest sum that Python has.
        return adler32(weighed, 0) & 0xFFFF
    return sum(adler32(weighed[start : start + SUM_CHUNK], 0) & 0xFFFF for start in range(0, len(weighed), SUM_CHUNK))


def fitting(text: str, most: int) -> int:
    """How many of the text's first characters take no more than `most`; linear, since the halves shrink."""
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
    """What a server said of a prompt: `tokens` for so many `characters`, by `length`. 0 tokens: it said nothing yet."""

    characters: int = 0
    tokens: int = 0


def tokens_of(characters: int, rate: float, report: Report) -> int:
    """Tokens of a prompt of this size, rounded up: the last report's, and at `rate` what is more or less."""
    more = characters - report.characters
    exact = report.tokens + more * (rate if more >= 0 or not report.tokens else rate * _REMOVED)
    return max(0, int(exact)) + 1


def characters_of(tokens: int, rate: float, report: Report) -> int:
    """The size of the longest prompt that is estimated to take no more than so many tokens; may be negative."""
    more = tokens - 1 - report.tokens
    found = report.characters + int(more / (rate if more >= 0 or not report.tokens else rate * _REMOVED))
    # A division rounds; the estimate is what decides.
    while tokens_of(found, rate, report) > tokens and found > 0:
        found -= 1
    return found


def calibrated(rate: float, last: Report, new: Report, history: int) -> tuple[float, Report]:
    """Rate and report after another report. `history` is the part of the new prompt's size that is messages.

    The tools may be less than they seem, for a template need not show them; messages are always shown. So a report
    that says too little for these, or less than the last one of a prompt that has grown, is none: some servers
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
    """The rate after so many characters took so many tokens: weighed by how many, and sooner up than down."""
    if not characters:
        return rate
    seen = min(_HIGHEST, max(_LOWEST, tokens / characters))
    return rate + (1 if seen > rate else _FALL) * (seen - rate) * characters / (characters + _STEADY)


def rate_of(tokens: int, characters: int) -> float:
    """The rate to begin with, by what a tokenizer makes of a sample: a quarter more, for there are other texts."""
    return min(_HIGHEST, max(_LOWEST, 1.25 * tokens / characters)) if characters else STARTING_RATE


def whole_rate(rate: float, report: Report) -> float:
    """Tokens a character of the last prompt as a whole, where a server has said what it took; else the rate."""
    return report.tokens / report.characters if report.tokens and report.characters else rate
