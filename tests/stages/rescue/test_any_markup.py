"""Calls in markup that nobody has declared: what is read of a reply, and what a page or a sentence only shows."""

import pytest

from stages import rescue

TOOLS = {"search": ("query",), "get_weather": ("city",), "delete": ("id",), "write_file": ("path", "content")}

READ: list[tuple[str, list[tuple[str, str]]]] = [
    ('<fx name="search"><v key="query">cats</v></fx>\nDone, see <b>bold</b>.', [("search", '{"query":"cats"}')]),
    (
        "<run=get_weather>\n<with=city>Paris</with>\n</run>\n<run=transfer>\n<with=account>4711</with>\n</run>",
        [("get_weather", '{"city":"Paris"}')],
    ),
    ("<call=get_weather><v=city>Paris</v></call>", [("get_weather", '{"city":"Paris"}')]),
    ('<tool name="delete" id="5"/>', [("delete", '{"id":"5"}')]),
    (
        "<think>" + "x y " * 80 + '</think>\n<fx name="get_weather"><v key="city">Rome</v></fx>',
        [("get_weather", '{"city":"Rome"}')],
    ),
    (
        '{"name":"write_file","arguments":{"path":"a.py","content":"print("a", "total: {x}")"}}',
        [("write_file", '{"path":"a.py","content":"print(\\"a\\", \\"total: {x}\\")"}')],
    ),
]


@pytest.mark.parametrize(("text", "calls"), READ)
def test_a_value_ends_where_its_own_markup_ends(text: str, calls: list[tuple[str, str]]) -> None:
    assert [(call.name, call.arguments) for call in rescue.rescue(text, TOOLS).calls] == calls


@pytest.mark.parametrize(
    "text",
    [
        'In the config: <button id="5" class="delete">Delete</button> is what you want.',
        '<tr class="delete" id="7">',
        '<!-- search query="x" -->',
        "[Note: do not delete, id: 5]",
        "[do not search, query: my password]",
        'Do not: delete\n```json\n{"id": "5"}\n```',
        "search " + "a>" * 3_000,
    ],
)
def test_pages_comments_and_sentences_call_nothing(text: str) -> None:
    assert not rescue.rescue(text, TOOLS).calls
