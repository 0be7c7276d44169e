"""Tags and markers of calls as patterns: brackets, bars and prefixes in all the forms that models and servers write.

Vendors mostly differ in the prefix (`minimax:`, `longcat_`, a word between bars), and servers lose or double bars, or
escape the line breaks between tags. These patterns are shared by all formats.
"""

import re

BAR = "[|\uff5c\u00a6\u2016\u2502\u2503\u2223\u2758\u01c0]"
"""A vertical bar and its look-alikes."""
OPENS = rf"<(?=[\w\s\u200b\u2060\ufeff.:{BAR[1:-1]}-]{{4}})"
"""The beginning of a tag with any long enough name; openers that begin so are searched for together."""
GAP = r"\s*+(?:\\[nrt]\s*+){0,3}+"
"""Blanks, including escaped line breaks."""
_THIN = "[ \u200b\u2060\ufeff]?"
"""A stray blank or zero-width character in a tag."""
PREFIX = rf"(?:[A-Za-z_][\w.-]{{0,23}}?(?:[:_.-]|{_THIN}{BAR}{{1,2}} ?))??"
"""Tried only if the word without it is not one of those sought: few tags have one."""
TAG = rf"<{_THIN}{BAR}{{0,2}}{_THIN}{PREFIX}"
END_TAG = rf"<{_THIN}{BAR}{{0,2}}{_THIN}/{_THIN}{BAR}{{0,2}} ?{PREFIX}"
TAG_END = rf"(?::[\w-]{{1,20}})?{BAR}{{0,2}} ?>"
"""The end of a tag; Hunyuan appends a variant to each name."""
QUOTE = r"(?:\\?[\"'\u201c\u201d])"
ATTRIBUTE = (
    r"(?:\s{1,8}(?:(?!(?:name|tool)=)\w{1,20}=[\"'][^\"'<>]{0,80}[\"']\s{1,8})?(?:name|key|tool|id))?\s{0,8}=\s{0,8}"
)
"""`name=` before the name of a tool or parameter, or just the equals sign."""
GIVEN = r"\s++[\w.-]{1,80}+=(?:\"[^\"]{0,2000}+\"|'[^']{0,2000}+'|[^\s\"'<>=/]{1,200}+)"
"""Any attribute with its value."""

CALL = r"(?:invoke|function|tool[_ -]?call|function[_ -]?call|tool_use|tool|call|action)"
PARAMETER = r"(?:parameter|param|argument|arg)"
KEY = r"(?:arg_?key|arg_?name|param_?key|param_?name|parameter_?key|parameter_?name|key)"
VALUE = r"(?:arg_?val(?:ue)?|param_?value|parameter_?value|value|val)"
"""The words of the tags around a call, a parameter, its name and its value."""
CLOSED = rf"(?:{END_TAG}{CALL}s?{TAG_END}|{TAG}{CALL}{TAG_END}(?=\s*+\Z))"
"""The closing tag of one or more calls, in any format, because models mix them up; or an opening one at the end."""

MINIMAX_TOKEN = "]<]minimax[>["  # noqa: S105 - a token of the model's, no secret
MARKER = (
    rf"(?:<{BAR}{{0,2}}/?[\w\u2581][\w\u2581 :./-]{{0,60}}{BAR}{{0,2}}>|\[{{1,2}}/?[A-Z][A-Z_]{{1,30}}\]{{1,2}}|"
    rf"\[{BAR}[\w:./-]{{1,60}}{BAR}\]|"
    "[\u3010\u3014\u27e6\u300a\u25c1\u00ab]/?[\\w: -]{1,40}[\u3011\u3015\u27e7\u300b\u25b7\u00bb])"
)
"""A control token, a tag without attributes, or a word between unusual brackets."""
LEFT, RIGHT = (
    "[<\\[{(\u27ea\u3010\u3014\u27e6\u00ab\u2039\u300a\u25c1]",
    "[>\\]})\u27eb\u3011\u3015\u27e7\u00bb\u203a\u300b\u25b7]",
)
IN_BRACKETS = "[^<>{}\\[\\]()\u27ea\u27eb\u3010\u3011\u3014\u3015\u27e6\u27e7\u00ab\u00bb\u2039\u203a\\n]"
"""A bracket of any kind, and what may separate two of them."""
GIVEN_BACK = (
    "tool_response|tool_responses|tool_result|tool_results|tool_output|function_response|function_results|function_result|"
    "observation|available_tools|tool_definitions"
)
"""Tags around text that the model was given; without a closing tag, everything after them."""
SHOWN = (
    "example|examples|documentation|quote|blockquote|transcript|log|results?|output|documents?|search_results?|page|email|"
    "article|snippet|history|conversation"
)
"""Tags around text that is only shown."""
RESULTS = frozenset({"output", "response", "result", "results", "log", "logs", "console", "diff", "patch"})
"""Fence languages of text that the model was given; in all others, some models write calls as JSON."""
PAGES = frozenset({"html", "xhtml", "svg", "jsx", "tsx", "vue", "svelte", "astro", "xsl", "xaml"})
"""Fence languages of pages and components: an element with a tool's name is part of the page, not a call."""
CODE = frozenset(
    {"js", "javascript", "ts", "typescript", "java", "kotlin", "swift", "c", "cpp", "c++", "cs", "csharp", "go", "rust"}
    | {"rb", "ruby", "php", "sql", "css", "lua", "perl", "r", "scala", "dart"}
    | {"bash", "sh", "shell", "zsh", "fish", "powershell", "ps1", "cmd", "bat", "terminal", "shell-session"}
    | {"clojure", "lisp", "haskell", "elixir", "graphql", "hcl", "terraform", "mysql", "postgresql"}
    | {"dockerfile"}
)
"""Fence languages of programs: what looks like a call is part of the program."""
STRAY_MARKUP = re.compile(
    rf"(?:{TAG}|{END_TAG})(?:tool_calls?|function_calls?|invoke|parameter){TAG_END}|"
    r"\]<\]minimax\[>\[|</?(?:tool_calls?(?::[\w-]{1,20})?|function_calls?|tools?_call|function|invoke|parameter|tool_use|TOOLCALL|"
    r"(?:minimax|seed|longcat|antml|steptml)[:_]\w+)>|"
    r"<[|\uff5c](?:im_end|im_start|eot_id|eom_id|end|end_of_text|endoftext|call|return|start|message|python_tag|sep|"
    r"DSML[|\uff5c] ?[\w ]*|/?(?:tool|tools|action|plugin|START|END|Function)\w*|tool[\u2581_]\w+)[|\uff5c]?>|"
    r"</[|\uff5c]DSML[|\uff5c] ?\w+>|<tool_call\|>|<(?:end|start)_function_call>|<\|python_(?:start|end)\|>|"
    r"<tool[\u2581_]calls?[\u2581_](?:begin|end)>|\[/?TOOL_CALLS\]|\[(?:END_)?TOOL_REQUEST\]"
)
"""An opening, closing or empty tag or token of calls."""
STEM = "(?:[Tt]ool|TOOL|[Ff]unc|FUNC|[Cc]all|CALL|[Ii]nvoke|[Aa]ction|ACTION|[Pp]lugin)"
"""A part of a word that markers of calls contain."""
WORDS = ("tool", "func", "call", "invoke", "action", "plugin")
"""One of these is in every text with such a part or with a word of the tags around a call, in lower case."""
_MARKER = re.compile(MARKER)
STEM_IN = re.compile(STEM)
_PLAIN = re.compile(r"</?[\w:.-]{1,60}>")
_TOKEN = re.compile(rf"</?{BAR}|<[^<>]{{1,60}}{BAR}>")
_ENDS = re.compile(r"/|(?<![a-z])end|End|END|close|stop|suffix|eo[mt]|return|turn")


_MARKER_ENDS = re.compile("[>\\]\u3011\u3015\u27e7\u300b\u25b7\u00bb]\\s*+\\Z")
_BEFORE = re.compile(rf"(?:{MARKER}\s{{0,4}}){{1,4}}\Z")


def is_of_calls(markers: str) -> bool:
    """Whether only calls have these markers, so that an unknown name after them is a mistake."""
    return STEM_IN.search(markers) is not None and _PLAIN.fullmatch(markers.strip()) is None


def before_call(markers: str) -> int:
    """How many characters of these markers precede the first one that belongs to calls; 0 if none does."""
    return next((found.start() for found in _MARKER.finditer(markers) if STEM_IN.search(found[0])), 0)


def is_closing(marker: str) -> bool:
    """Whether a marker ends a call or a turn, by the words in it; other closing tags are text."""
    return (STEM_IN.search(marker) or _TOKEN.match(marker)) is not None and _ENDS.search(marker) is not None


def markers_before(text: str, start: int) -> int:
    """Where the control tokens and tags of calls right before `start` begin; `start` if there are none."""
    found = _MARKER_ENDS.search(text, max(0, start - 5), start) and _BEFORE.search(text, max(0, start - 160), start)
    if not found:
        return start
    begin = start
    for marker in _MARKER.finditer(found[0]):
        if is_closing(marker[0]):
            begin = start
        elif begin == start and (STEM_IN.search(marker[0]) or _TOKEN.match(marker[0])):
            begin = found.start() + marker.start()
    return begin


_CLOSING = re.compile(rf"{GAP}[\"']?{GAP}(?:[}}\])]{{1,2}}{GAP})?(?:```{GAP})?(?P<marker>{MARKER})")


def past_closing(text: str, position: int) -> int:
    """The position after the markers that close a call."""
    for _ in range(4):
        closing = _CLOSING.match(text, position)
        if closing is None or not is_closing(closing["marker"]):
            break
        position = closing.end()
    return position
