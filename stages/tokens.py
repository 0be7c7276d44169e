"""Tokens: the size of a text in a prompt, estimated from its characters and calibrated with what servers report.

The unit of an estimate is the character of plain prose; digits, punctuation and foreign scripts count as several.
Estimates add up, so sums can be kept: `length(a + b) == length(a) + length(b)`. Calibration is a value: a rate of
tokens per character, and the last report.
"""

from string import ascii_uppercase, digits, punctuation
from zlib import adler32

from msgspec import Struct

STARTING_RATE = 0.25
"""Tokens per character before the first report. Most texts of any kind take 0.15 to 0.2; the rest is a margin."""

_LOWEST, _HIGHEST = 0.05, 1.0
"""Minimum and maximum plausible rate; a report that implies another rate is ignored."""

_PREAMBLE = 2000
"""Maximum plausible number of tokens that a server adds to a prompt, such as a system prompt of its own."""

_FALL = 0.3
"""Share of a fall that the rate follows. A rise it follows fully: too high is safer than too low."""

_STEADY = 200
"""Number of new characters at which the rate moves half-way: a few characters say little about it."""

_REMOVED = 0.75
"""Share of its size that removed text is credited with until the next report: an underestimate, to be safe."""

# The weight of a UTF-8 byte, where a letter of prose weighs 1: fitted to the tokenizers of Qwen2.5, SmolLM2, DeepSeek,
# cl100k, Tekken, Mistral 3 and Claude 2 over prose, code, JSON, tables, logs and 31 languages (benchmarks/TOKENS.md).
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


WEIGHTS = bytes(next((weight for members, weight in _KINDS if byte in members), 1) for byte in range(256))
SUM_CHUNK = 4096
"""Bytes that are summed at a time: with weights up to 15 the sum stays below 65,521, the limit of Adler-32."""


def length(text: str) -> int:
    """Size of a text in a prompt, in characters of plain prose. Linear, without a Python loop below 4 kB."""
    # Lone surrogates have no UTF-8, but here they only have to be counted.
    weighed = text.encode("utf-8", "surrogatepass").translate(WEIGHTS)
    if len(weighed) <= SUM_CHUNK:
        # The low half of an Adler-32 that starts at 0 is the sum of the bytes, faster than sum().
        return adler32(weighed, 0) & 0xFFFF
    return sum(adler32(weighed[start : start + SUM_CHUNK], 0) & 0xFFFF for start in range(0, len(weighed), SUM_CHUNK))


def fitting_length(text: str, most: int) -> int:
    """The maximum number of the text's first characters whose `length` is at most `most`.

    A binary search that measures each half once, and so is linear.
    """
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
    """A server's token count for a prompt of `characters`, as `length` counts them. 0 tokens: no report yet."""

    characters: int = 0
    tokens: int = 0


def tokens_of(characters: int, rate: float, report: Report) -> int:
    """Tokens of a prompt of this size, rounded up: those of the last report, plus the difference at `rate`."""
    more = characters - report.characters
    exact = report.tokens + more * (rate if more >= 0 or not report.tokens else rate * _REMOVED)
    return max(0, int(exact)) + 1


def characters_of(tokens: int, rate: float, report: Report) -> int:
    """Size of the longest prompt that is estimated at `tokens` or less; may be negative."""
    more = tokens - 1 - report.tokens
    found = report.characters + int(more / (rate if more >= 0 or not report.tokens else rate * _REMOVED))
    # The division rounds, so make sure that the estimate of the result is within the limit.
    while tokens_of(found, rate, report) > tokens and found > 0:
        found -= 1
    return found


def calibrated(rate: float, last: Report, new: Report, history: int) -> tuple[float, Report]:
    """Rate and report after a new report. `history` is the size of the new prompt's messages alone.

    A report is ignored if it is too small for the messages, or smaller than the last one although the prompt has grown:
    some servers count only tokens that they had not cached. Only messages count for that minimum, because a template
    may leave out the tools.
    """
    if not history * _LOWEST <= new.tokens <= new.characters * _HIGHEST + _PREAMBLE or new.tokens <= 0:
        return rate, last
    more = new.characters - last.characters
    if not last.tokens or more < 0:
        return rate, new
    if new.tokens < last.tokens:
        return rate, last
    if not more:
        return rate, new
    seen = min(_HIGHEST, max(_LOWEST, (new.tokens - last.tokens) / more))
    return rate + (1 if seen > rate else _FALL) * (seen - rate) * more / (more + _STEADY), new


def rate_of(tokens: int, characters: int) -> float:
    """The starting rate, given a tokenizer's count for a sample: a quarter more, as other texts may take more."""
    return min(_HIGHEST, max(_LOWEST, 1.25 * tokens / characters)) if characters else STARTING_RATE


def whole_rate(rate: float, report: Report) -> float:
    """Tokens per character of the whole last prompt, if the server reported its count; else the rate."""
    return report.tokens / report.characters if report.tokens and report.characters else rate
