"""Lines of a server: the same however they come in pieces, and never more of one than its limit."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forge.mcp.protocol import local_names
from forge.mcp.streams import LineSplitter, TooLong, answered_request


@given(
    st.lists(st.binary(max_size=12).filter(lambda line: b"\n" not in line), max_size=8), st.integers(1, 12), st.data()
)
def test_lines_are_whole_or_too_long_however_they_are_cut(wanted: list[bytes], limit: int, data: st.DataObject) -> None:
    text = b"".join(line + b"\n" for line in wanted)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=6)))
    lines = LineSplitter(limit)
    pieces = [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    found = [line for piece in pieces for line in lines.feed(piece)]
    assert [line.size if isinstance(line, TooLong) else line for line in found] == [
        len(line) if len(line) > limit else line for line in wanted
    ]


def test_the_ends_of_a_line_that_is_too_long_are_kept() -> None:
    (line,) = LineSplitter(1000).feed(b"a" * 300 + b"-" * 5000 + b"z" * 300 + b"\n")
    assert line == TooLong(5600, b"a" * 200, b"z" * 200)


@pytest.mark.parametrize(
    ("start", "end", "known"),
    [
        (b'{"jsonrpc":"2.0","id":7,"result":{', b"", 7),
        (b'{ "jsonrpc": "2.0", "id": 7, "error"', b"", 7),
        (b'{"result":{', b'}},"jsonrpc":"2.0","id":7}', 7),
        (b'{"result":{', b'}}, "id": 7, "jsonrpc": "2.0"}\r', 7),
        (b'{"result":{', b'"id":7}}', None),
        (b'{"method":"notifications/progress"', b'"total":7}}', None),
    ],
)
def test_which_request_an_unreadable_answer_is_for(start: bytes, end: bytes, known: int | None) -> None:
    assert answered_request(start, end) == known


@given(st.dictionaries(st.sampled_from(["a", "a_b", "long"]), st.lists(st.text(max_size=80), unique=True, max_size=4)))
def test_names_are_legal_unique_and_do_not_depend_on_the_order(tools: dict[str, list[str]]) -> None:
    names = local_names(tools)
    assert names == local_names({server: wanted[::-1] for server, wanted in reversed(tools.items())})
    flat = [name for of_server in names.values() for name in of_server.values()]
    assert len(flat) == len({*flat}) == sum(map(len, tools.values()))
    assert all(len(name) <= 64 and name.isascii() and name.replace("_", "").replace("-", "").isalnum() for name in flat)
