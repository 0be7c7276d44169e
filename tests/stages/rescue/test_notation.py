"""Calls in a notation of the model's own: what is read of it, and what is a sentence, a table, or cut off."""

import json

import pytest

from stages import rescue

TOOLS = {"find_route": ("from", "to", "date"), "search": ("query", "limit"), "get_time": ("zone",)}


@pytest.mark.parametrize(
    ("text", "calls"),
    [
        (">> search --query=cats --limit=5", [("search", {"query": "cats", "limit": "5"})]),
        (
            '$CALL find_route WITH from AS Oslo, to AS "Bergen, Norway"',
            [("find_route", {"from": "Oslo", "to": "Bergen, Norway"})],
        ),
        ('(call search :query "two words" :limit 5)', [("search", {"query": "two words", "limit": "5"})]),
        ("tool://search?query=two+words%21&limit=5", [("search", {"query": "two words!", "limit": "5"})]),
        ("@@CALL|search|query=cats and dogs|limit=5|@@END", [("search", {"query": "cats and dogs", "limit": "5"})]),
        (
            "ВЫЗОВ: find_route\nfrom: Москва\nto: Санкт-Петербург\ndate: 10:30\nКОНЕЦ ВЫЗОВА",  # noqa: RUF001
            [("find_route", {"from": "Москва", "to": "Санкт-Петербург", "date": "10:30"})],
        ),
        (
            '1) search <- query: "cats"\n2) get_time <- zone: "Europe/Oslo"',
            [("search", {"query": "cats"}), ("get_time", {"zone": "Europe/Oslo"})],
        ),
        (
            "Let me look.\n>>> search\n>>> query = [1, 2]\n>>> limit = 5\n>>> go",
            [("search", {"query": [1, 2], "limit": "5"})],
        ),
        (">> search --limit=5 --query=rm -rf /tmp/x", [("search", {"limit": "5", "query": "rm -rf /tmp/x"})]),
        ("(search :limit 5 :query https://a.com/x)", [("search", {"limit": "5", "query": "https://a.com/x"})]),
        ("search{limit: 5, query: x = {1: 2}}", [("search", {"limit": "5", "query": "x = {1: 2}"})]),
        ("search limit: 5, query: Hello, world", [("search", {"limit": "5", "query": "Hello, world"})]),
        ("find_route / from: A / to: https://b", [("find_route", {"from": "A", "to": "https://b"})]),
        (r'>> search --query="C:\Users" --limit=5', [("search", {"query": r"C:\Users", "limit": "5"})]),
        ("@@search | limit=5 | query=Lunch plans @@", [("search", {"limit": "5", "query": "Lunch plans"})]),
        ("$ run-tool search --query cats --limit 5", [("search", {"query": "cats", "limit": "5"})]),
    ],
)
def test_arguments_that_are_written_alike_are_read_as_a_guess(text: str, calls: list[tuple[str, object]]) -> None:
    found = rescue.rescue(text, TOOLS).calls
    assert [(call.name, json.loads(call.arguments)) for call in found] == calls
    assert all(call.cost > 0 for call in found)


@pytest.mark.parametrize(
    "text",
    [
        "Never search query=cats",
        "| search | query: cats |",
        "search failed\nquery: cats",
        "The search\nquery: cats\nlimit: 5",
        "tool: search\nquery: cats\nStop words were removed",
        "// search query=cats",
        "**search query=cats**",
        ">> search --query=cats --depth=3",
        ">> search --query=cats --limit=5 and depth=3",
        ">> search query: cats, limit = 5",
        '(call search :query "cats" :limit 5',
        "(call search :query ca",
        "Do not run this:\n$ search query=cats",
        "Example:\nsearch query=cats",
        "Do not call search query=cats",
        "Tool result: search query=cats",
        "Example call: search query=cats",
        "\u00dcber search query: cats",
        "[ ] search query: cats",
        "10:05 | search | query: cats",
        "find_route: search: date: 10:30\nfrom: A",
        "search query=cats\n- done",
        "search query=cats\nDO NOT RUN",
        "find_route from: A, to: the date: none",
        "```\nsearch query=ca",
        ">> search --query=cats --li",
        "search query: [1, 2",
        "Search\nQuery: cats\nLimit: 10",
    ],
)
def test_what_is_a_sentence_or_cut_off_or_gives_something_else_calls_nothing(text: str) -> None:
    assert not rescue.rescue(text, TOOLS).calls
