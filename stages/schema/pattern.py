"""Patterns that llama.cpp's grammars support: from an ECMA regular expression to its plainest equal.

llama.cpp (common/json-schema-to-grammar.cpp) copies classes and quantifiers into its own grammar language and writes
text into JSON unescaped. So only what means the same there is passed on: ASCII text without quotes and backslashes,
positive classes, groups, alternatives in groups, and small repetitions.
"""

import re

MOST_REPEATS = 100
"""Maximum copies that one repetition may unfold to; the grammar's size and time grow with them."""

_TOKEN = re.compile(
    r"""(?P<open>\((?:\?:)?(?![?*+{)|]))
    |   (?P<close>(?<![(|])\))
    |   (?P<either>(?<![(|])\|(?![)|?*+{]))
    |   (?P<many>(?<![\^(|*+?}])(?:[*+?]|\{(?P<low>\d{1,4})(?:,(?P<high>\d{1,4}))?\})(?![?+]))
    |   (?P<set>\\[dw])
    |   (?P<escaped>\\[.*+?(){}|$/-])
    |   \[(?P<members>-?(?:[A-Za-z0-9]-[A-Za-z0-9](?!-[^\]])|[A-Za-z0-9 _.,:;@#%&=!~<>/'`*+?(){}|$]
                        |\\[dw./$*+?(){}|-])+-?)\]
    |   (?P<text>[A-Za-z0-9 _,:;@\#%&=!~<>/'`-])""",
    re.VERBOSE,
)
_SETS = {"d": "0-9", "w": "A-Za-z0-9_"}
_MEMBER = re.compile(r"\\(?P<set>[dw])|\\(?P<escaped>.)|(?P<range>[A-Za-z0-9]-[A-Za-z0-9])|(?P<plain>.)")


def plain_pattern(pattern: str) -> str | None:
    """An equal pattern that llama.cpp supports, from `^` to `$`; None: there is none."""
    if not (pattern.startswith("^") and pattern.endswith("$") and len(pattern) > 2):
        return None
    written = ["^"]
    depth, at, end = 0, 1, len(pattern) - 1
    while at < end:
        token = _TOKEN.match(pattern, at, end)
        text = token and _written(token, depth)
        if token is None or text is None:
            return None
        depth += bool(token["open"]) - bool(token["close"])
        written.append(text)
        at = token.end()
    return "".join([*written, "$"]) if depth == 0 else None


def _written(token: re.Match[str], depth: int) -> str | None:
    """The token as llama.cpp reads it correctly; None: it cannot."""
    if token["open"]:
        return "("
    if token["set"]:
        return f"[{_SETS[token['set'][1]]}]"
    if token["escaped"]:
        # A class of one: llama.cpp would join an escaped character with the text before it, and repeat both.
        return f"[{token['escaped'][1]}]"
    if token["members"]:
        return _class(token["members"])
    if token["low"] and not int(token["low"]) <= int(token["high"] or token["low"]) <= MOST_REPEATS:
        return None
    return None if (token["either"] or token["close"]) and depth == 0 else token[0]


def _class(members: str) -> str | None:
    """A class of the same characters without escapes, the hyphen last, where it means itself."""
    found = [*_MEMBER.finditer(members)]
    if any(m["range"] and m["range"][0] > m["range"][2] for m in found):
        return None
    plainly = [_SETS[m["set"]] if m["set"] else m["range"] or m["escaped"] or m["plain"] for m in found]
    hyphen = "-" if "-" in plainly else ""
    return f"[{''.join(text for text in plainly if text != '-')}{hyphen}]"
