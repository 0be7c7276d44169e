"""Twenty-one more lists of formats, damage, invented formats and texts without calls, scored before anybody looked.

`fresh` is from the parsers and tests of vLLM and SGLang, and from issues with real replies. `half` is `tune` or `held`:
of damage, the held half was looked at too once its result had been written down (benchmarks/RESCUE.md). `third` came
after, as of what models of 2026 write that is in neither. `fourth` is from replies that people pasted into the issues
of servers and agents, each with its source; `fifth` damages fourteen formats in up to 45 ways; `sixth` is as `fourth`,
written later; `seventh` is from tests and issues of this autumn, its held half looked at last; so is
`eighth`, from the tests and issues of servers and agents that are in none of the others, `ninth`, from issues of this
year that are in none of those, and `eleventh` to `twentyfourth`, each by an author who knew none of this; thirteen
have tools of their own.
What each list scored before it was tuned on is in benchmarks/RESCUE.md too.
"""

import json

import msgspec
import pytest
from msgspec import Raw

from stages.effect import Reply
from stages.reading.replies import ReplyRead, reader
from stages.rescue import FAMILIES
from stages.rules import Rules
from stages.tool import ToolEffect, ToolSpec
from tests.rescue_corpus import FOLDER, Meant, arguments
from tests.stages.rescue.test_shapes import Case

CASES = [
    msgspec.json.decode(line, type=Case)
    for name in (
        "fresh",
        "third",
        "fourth",
        "fifth",
        "sixth",
        "seventh",
        "eighth",
        "ninth",
        "eleventh",
        "twelfth",
        "thirteenth",
        "fourteenth",
        "fifteenth",
        "sixteenth",
        "seventeenth",
        "eighteenth",
        "nineteenth",
        "twentieth",
        "twentyfirst",
        "twentysecond",
        "twentythird",
        "twentyfourth",
    )
    for line in (FOLDER / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
]
WITH_TOOLS = (
    "thirteenth",
    "fourteenth",
    "fifteenth",
    "sixteenth",
    "seventeenth",
    "eighteenth",
    "nineteenth",
    "twentieth",
    "twentyfirst",
    "twentysecond",
    "twentythird",
    "twentyfourth",
)
"""Lists with tools of their own, in a file beside them."""
NOT_READ = {
    "24-d012": "tags without a bracket or a word",
    "24-d031": "every bracket that opens a tag lost, and the slashes",
    "24-d048": "the arguments as an object in the place of a key",
    "24-d065": "a name under a key that no format has, in a tag with JSON",
    "24-d070": "a block without its last END_ARG may be cut off",
    "24-iJ2": "without the schema, a tool whose arguments are all optional needs some",
    "damage/set-py": "a set of Python",
    "damage/concat": "an expression",
    "damaged-037": "blanks around a value in a tag are the value's",
    "negative/data13": "an error that tells of a call",
    "negative/template2": "the guard of placeholders refuses it",
    "negative/placeholder": "the guard of placeholders refuses it",
    "negative/placeholder-mustache": "the guard of placeholders refuses it",
}
"""Cases that are not read as they are meant, and why."""
PARAMETERS = {
    "get_weather": {"city": "string", "days": "integer", "unit": "string"},
    "read_file": {"path": "string", "start_line": "integer", "limit": "integer"},
    "write_file": {"path": "string", "content": "string"},
    "run_shell": {"command": "string", "timeout": "integer"},
    "search_web": {"query": "string", "max_results": "integer"},
    "send_email": {"to": "string", "subject": "string", "body": "string"},
    "transfer": {"account": "string", "amount": "number", "urgent": "boolean"},
    "list_orders": {},
    "set_tags": {"item": "string", "tags": "array"},
    "create_event": {"title": "string", "when": "object"},
    "bash": {"command": "string", "timeout": "integer"},
    "get_stock_price": {"symbol": "string", "exchange": "string"},
    "search_notes": {"query": "string", "top_k": "integer"},
    "list_files": {"directory": "string", "recursive": "boolean"},
    "ping": {},
    "set_temperature": {"room": "string", "celsius": "number"},
    "create_ticket": {"title": "string", "priority": "string", "labels": "array"},
    "edit_file": {"path": "string", "old_text": "string", "new_text": "string", "replace_all": "boolean"},
    "mcp__db__query": {"sql": "string", "limit": "integer"},
    "rename": {"name": "string", "new_name": "string"},
}
TWELFTH: dict[str, dict[str, str]] = {
    "get_weather": {"city": "string", "days": "integer", "unit": "string"},
    "read_file": {"path": "string", "start": "integer", "end": "integer"},
    "list_dir": {"path": "string", "depth": "integer", "hidden": "boolean"},
    "grep_code": {"pattern": "string", "path": "string", "glob": "string", "ignore_case": "boolean"},
    "find_trains": {
        "origin": "string",
        "destination": "string",
        "date": "string",
        "passengers": "integer",
        "direct": "boolean",
    },
    "query_db": {"sql": "string", "limit": "integer"},
    "search_web": {"query": "string", "top_k": "integer", "lang": "string"},
    "fetch_page": {"url": "string", "timeout": "integer"},
    "get_stock": {"symbol": "string", "market": "string"},
    "lookup_user": {"email": "string"},
    "convert_currency": {"amount": "number", "base": "string", "target": "string"},
    "list_alarms": {},
    "get_time": {"zone": "string"},
    "lint_code": {"source": "string", "language": "string", "rules": "array"},
    "search_issues": {"repo": "string", "labels": "array", "state": "string", "query": "string"},
    "track_parcel": {"number": "string", "carrier": "string"},
    "find_recipe": {"ingredients": "array", "vegan": "boolean", "minutes": "integer"},
    "translate_text": {"text": "string", "target": "string"},
    "get_metrics": {"service": "string", "window": "any", "filters": "any"},
    "calendar_free": {"people": "array", "day": "string", "minutes": "integer"},
    "send_mail": {"to": "string", "subject": "string", "body": "string"},
    "delete_file": {"path": "string", "recursive": "boolean"},
    "book_table": {"place": "string", "when": "string", "guests": "integer"},
    "deploy_app": {"env": "string", "tag": "string"},
    "pay_invoice": {"invoice": "string", "amount": "number"},
    "update_ticket": {"id": "string", "fields": "object"},
    "post_message": {"channel": "string", "text": "string"},
    "create_branch": {"name": "string", "base": "string"},
    "reset_password": {"user": "string"},
    "run_migration": {"name": "string", "dry_run": "boolean"},
    "write_note": {"path": "string", "content": "string"},
    "cancel_order": {"order": "string", "reason": "string"},
}
"""The tools of the twelfth list."""


def _schemas(parameters: dict[str, dict[str, str]]) -> dict[str, object]:
    return {
        name: {
            "type": "object",
            "properties": {key: {} if kind == "any" else {"type": kind} for key, kind in given.items()},
        }
        for name, given in parameters.items()
    }


def _reader(schemas: dict[str, object], effect: ToolEffect) -> ReplyRead:
    tools = tuple(
        ToolSpec(name=name, description="", parameters=Raw(json.dumps(schema).encode()), effect=effect)
        for name, schema in schemas.items()
    )
    return reader(Rules(tools=tools), in_text=False, families=FAMILIES)


READERS = {
    name: (_reader(schemas, "read"), _reader(schemas, "write"))
    for name, schemas in {
        "": _schemas(PARAMETERS),
        "twelfth": _schemas(TWELFTH),
        **{name: json.loads((FOLDER / f"{name}_tools.json").read_text(encoding="utf-8")) for name in WITH_TOOLS},
    }.items()
}
"""By list, where it has tools of its own: readers for tools that read, and for tools that write."""
READS, WRITES = READERS[""]


def is_right(case: Case) -> bool:
    """Whether its calls are read as they are meant, or, of a text that calls nothing, no tool that writes runs."""
    reads, writes = READERS.get(case.half.partition("-")[0], (READS, WRITES))
    read = (writes if case.kind == "negative" else reads)(Reply(text=case.text))
    sound = case.kind == "negative" or all(call.wrong is None for call in read.calls)
    found = tuple(Meant(call.name, arguments(call.arguments)) for call in read.calls if call.wrong is None)
    return sound and found == case.calls


@pytest.mark.parametrize("case", [pytest.param(case, id=f"{case.half} {case.id}") for case in CASES])
def test_the_calls_that_are_meant_are_read_and_no_write_runs_from_a_text_without_any(case: Case) -> None:
    assert is_right(case) is not (case.missed or case.id in NOT_READ)
