"""Strategies for replies: calls in the grammars of many families, damage to them, chunks."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import AnyStr

import msgspec
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from forge.testing.history_strategies import TOOL_NAMES, arguments, texts
from stages.effect import RawCall, Reply, Usage

GRAMMARS: Mapping[str, tuple[str, str]] = {
    "bare": ('{"name": "NAME", "arguments": JSON}', ""),
    "fenced": ('```json\n{"name": "NAME", "arguments": JSON}\n```', ""),
    "tagged": ('<tool_call>\n{"name": "NAME", "arguments": JSON}\n</tool_call>', ""),
    "args": ("[TOOL_CALLS]NAME[ARGS]JSON", ""),
    "functionary": (">>>NAME\nJSON", ""),
    "function": (
        "<tool_call>\n<function=NAME>\nEACH</function>\n</tool_call>",
        "<parameter=KEY>\nVALUE\n</parameter>\n",
    ),
    "invoke": (
        '<function_calls>\n<invoke name="NAME">\nEACH</invoke>\n</function_calls>',
        '<parameter name="KEY">VALUE</parameter>\n',
    ),
    "arg_key": (
        "<tool_call>NAME\nEACH</tool_call>",
        "<arg_key>KEY</arg_key>\n<arg_value>VALUE</arg_value>\n",
    ),
    "own_tag": ("<NAME>\nEACH</NAME>", "<KEY>VALUE</KEY>\n"),
    "harmony": ("<|channel|>commentary to=functions.NAME <|constrain|>json<|message|>JSON<|call|>", ""),
    "pythonic": ("[NAME(EACH)]", 'KEY="VALUE",'),
    "react": ("Thought: I need it.\nAction: NAME\nAction Input: JSON", ""),
}
"""How families write a call, and each argument if they do not write one JSON object."""


def call_text(family: str, name: str, values: Mapping[str, object]) -> str:
    """The call as that family of `GRAMMARS` writes it, undamaged."""
    whole, each = GRAMMARS[family]
    parts = (each.replace("KEY", key).replace("VALUE", str(value)) for key, value in values.items())
    given = msgspec.json.encode(values).decode()
    return whole.replace("NAME", name).replace("EACH", "".join(parts)).replace("JSON", given)


_DAMAGE: Mapping[str, Callable[[str], str]] = {
    "none": lambda text: text,
    "trailing comma": lambda text: text.replace("}", ",}", 1),
    "single quotes": lambda text: text.replace('"', "'"),
    "curly quotes": lambda text: text.replace('"', "“", 1).replace('"', "”", 1),
    "quotes in HTML": lambda text: text.replace('"', "&quot;"),
    "keys without quotes": lambda text: text.replace('"name"', "name").replace('"arguments"', "arguments"),
    "another word": lambda text: text.replace('"arguments"', '"parameters"').replace("parameter", "param"),
    "one quote too many": lambda text: text.replace('"', '""', 1),
    "a raw newline": lambda text: text.replace(" ", "\n", 1),
    "a colon missing": lambda text: text.replace(":", "", 1),
    "braces doubled": lambda text: text.replace("{", "{{").replace("}", "}}"),
    "no closing tag": lambda text: text[: text.rfind("</")] if "</" in text else text[:-1],
    "no opening tag": lambda text: text[text.find(">") + 1 :],
    "another name": lambda text: text.replace("o", "0").replace("i", "I"),
    "thought, not done": lambda text: f"<think>I will say {text}",
    "told": lambda text: f"For example, you could write {text} to do it.",
    "in a sentence": lambda text: f"Of course! {text}\n\nLet me know if there is more.",
    "twice": lambda text: f"{text}\n{text}",
}
"""Kinds of damage to a call, by name; besides, characters are lost and ends cut off."""

_VALUES = st.dictionaries(
    st.sampled_from(("what", "text", "n")),
    st.sampled_from(("a", "two words", "it's", 'a "b" c', "{", "</x>", "größer 🙂", 7, -0.5)),
    max_size=3,
)


@st.composite
def malformed(draw: st.DrawFn, tools: Sequence[str] = TOOL_NAMES) -> str:
    """A text with a call in it, usually damaged, in the grammar of some family."""
    text = call_text(draw(st.sampled_from([*GRAMMARS])), draw(st.sampled_from(tools)), draw(_VALUES))
    for damage in draw(st.lists(st.sampled_from([*_DAMAGE]), max_size=2)):
        text = _DAMAGE[damage](text)
    if draw(st.booleans()):
        lost = draw(st.integers(0, len(text)))
        text = text[:lost] + text[lost + 1 :]
    return text[: draw(st.integers(0, len(text)))] if draw(st.booleans()) else text


def replies(tools: Sequence[str] = TOOL_NAMES) -> SearchStrategy[Reply]:
    """Replies: text, calls in text, native calls, damaged or not, or nothing."""
    broken = st.sampled_from(("", "{", "[]", '{"what": 3,}', "null", '"a"'))
    names = st.sampled_from((*tools, *tools, *tools, "unheard of", ""))
    made = st.builds(RawCall, id=st.sampled_from(("", "1")), name=names, arguments=arguments() | broken)
    return st.builds(
        Reply,
        text=st.just("") | malformed(tools) | texts(),
        reasoning=st.just("") | texts(),
        calls=st.just(()) | st.lists(made, max_size=3).map(tuple),
        finish=st.sampled_from(("stop", "length", "tool_calls")),
        usage=st.none() | st.builds(Usage, prompt=st.integers(0, 5000), completion=st.integers(0, 500)),
    )


def chunkings(whole: AnyStr) -> SearchStrategy[tuple[AnyStr, ...]]:
    """Every way to split a text or bytes into chunks, including one piece, single characters and empty chunks."""
    places = st.integers(0, len(whole))
    return st.lists(places).map(lambda at: _cut(whole, at)) | st.just(_cut(whole, range(1, len(whole))))


def _cut(whole: AnyStr, at: Iterable[int]) -> tuple[AnyStr, ...]:
    return tuple(whole[start:end] for start, end in pairwise((0, *sorted(at), len(whole))))
