"""Canonical JSON: arguments that mean the same are one text; laws: `tests/property/test_canonical_laws.py`."""

import pytest

from stages.schema.canonical_json import canonical


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ('{ "b": 1, "a": 2 }', '{"a":2,"b":1}'),
        ('{"a":1.0}', '{"a":1}'),
        ('{"a":1e2}', '{"a":100}'),
        ('{"a":[{"d":1,"c":2.0}]}', '{"a":[{"c":2,"d":1}]}'),
        ('{"a":"\\u00e9"}', '{"a":"é"}'),
        ('{"a":1.5}', '{"a":1.5}'),
        ("no json", "no json"),
        ("", ""),
    ],
)
def test_one_text_for_what_means_the_same(text: str, same: str) -> None:
    assert canonical(text) == same


@pytest.mark.parametrize(("one", "other"), [('{"a":1}', '{"a":"1"}'), ("[1,2]", "[2,1]"), ('{"a":1}', '{"a":true}')])
def test_what_differs_stays_different(one: str, other: str) -> None:
    assert canonical(one) != canonical(other)
