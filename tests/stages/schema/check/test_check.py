"""Arguments against their schema: which coercions are made, and what is said of arguments that don't fit."""

import json

import pytest

from stages.schema import Fits, Misfit, Problem, SchemaError, checker

ORDER = {
    "type": "object",
    "properties": {
        "qty": {"type": "integer", "maximum": 10},
        "price": {"type": "number"},
        "gift": {"type": "boolean"},
        "tags": {"type": "array", "items": {"type": "string"}},
        "counts": {"type": "array", "items": {"type": "integer"}},
        "filter": {"$ref": "#/$defs/filter"},
        "limit": {"anyOf": [{"type": "integer"}, {"$ref": "#/$defs/filter"}, {"type": "null"}]},
        "either": {"anyOf": [{"type": "integer"}, {"type": "array", "items": {"type": "string"}}]},
        "level": {"enum": [1, 2]},
        "color": {"enum": ["red", "green"]},
        "note": {"type": "string"},
        "nickname": {"type": ["string", "null"]},
        "id": {"type": ["string", "integer"]},
        "base": {"allOf": [{"properties": {"a": {"type": "integer"}}}, {"properties": {"b": {"type": "integer"}}}]},
        "pair": {"type": "array", "prefixItems": [{"type": "integer"}, {"type": "string"}]},
        "a/b~c": {"anyOf": [{"type": "integer"}]},
        "day": {"type": "string", "format": "date"},
        "odd": {"type": "string", "format": "sort-of"},
        "extra": {"type": "object", "additionalProperties": {"type": "integer"}},
    },
    "additionalProperties": False,
    "$defs": {
        "filter": {
            "type": "object",
            "properties": {"q": {"type": "integer"}, "all": {"type": "array", "items": {"$ref": "#/$defs/filter"}}},
            "required": ["q"],
        }
    },
}
order = checker(json.dumps(ORDER).encode())


@pytest.mark.parametrize(
    ("schema", "given", "expected"),
    [
        ({"enum": ["true", "false"]}, "true", "true"),
        ({"type": "string", "enum": ["1", "2"]}, "2", "2"),
        ({"enum": ["1", 1]}, "1", 1),
        ({"type": "array", "items": {"type": "integer"}}, '"<item>1</item> <item>2</item>"', [1, 2]),
        ({"type": "array", "items": {"type": "string"}}, '"[red, dark blue]"', ["red", "dark blue"]),
        ({"type": "string"}, '"[red, blue]"', "[red, blue]"),
        ({"type": "integer"}, '{"type": "integer", "value": "5"}', 5),
        ({"type": "object"}, '{"type": "integer", "value": "5"}', {"type": "integer", "value": "5"}),
    ],
)
def test_what_has_one_meaning_in_the_schema_is_that(schema: dict[str, object], given: str, expected: object) -> None:
    check = checker(json.dumps({"type": "object", "properties": {"x": schema}}).encode())
    fits = check(f'{{"x": {given}}}')
    assert isinstance(fits, Fits)
    assert json.loads(fits.arguments) == {"x": expected}


@pytest.mark.parametrize("given", ["2.0", "3", '["1"]'])
def test_a_value_that_no_option_spells_is_refused(given: str) -> None:
    check = checker(b'{"type": "object", "properties": {"x": {"type": "string", "enum": ["1", "2"]}}}')
    assert isinstance(check(f'{{"x": {given}}}'), Misfit)


@pytest.mark.parametrize(
    ("given", "expected", "repairs"),
    [
        ('{"qty": 5,"note":"x"}', '{"qty":5,"note":"x"}', ()),
        ('{"qty":"5"}', '{"qty":5}', ('string to integer at "qty"',)),
        ('{"qty":" 5\\n"}', '{"qty":5}', ('string to integer at "qty"',)),
        ('{"color":"Red"}', '{"color":"red"}', ('case of option at "color"',)),
        ('{"qty":2.0,"price":2.0}', '{"qty":2,"price":2.0}', ('number to integer at "qty"',)),
        ('{"price":"1.5"}', '{"price":1.5}', ('string to number at "price"',)),
        ('{"price":"5"}', '{"price":5}', ('string to integer at "price"',)),
        ('{"qty":"1e1"}', '{"qty":10}', ('string to integer at "qty"',)),
        ('{"qty":"\\"5\\""}', '{"qty":5}', ('string to integer at "qty"',)),
        ('{"note":5}', '{"note":"5"}', ('integer to string at "note"',)),
        ('{"tags":["x",1]}', '{"tags":["x","1"]}', ('integer to string at "tags[1]"',)),
        ('{"gift":"true"}', '{"gift":true}', ('string to boolean at "gift"',)),
        ('{"gift":"True"}', '{"gift":true}', ('string to boolean at "gift"',)),
        ('{"gift":"yes"}', '{"gift":true}', ('string to boolean at "gift"',)),
        ('{"qty":"+3"}', '{"qty":3}', ('string to integer at "qty"',)),
        ('{"counts":"[1, 2,]"}', '{"counts":[1,2]}', ('JSON text to array at "counts"',)),
        ("""{"tags":"['a', 'b']"}""", '{"tags":["a","b"]}', ('JSON text to array at "tags"',)),
        ('{"nickname":"null"}', '{"nickname":null}', ('string to null at "nickname"',)),
        ('{"tags":"x"}', '{"tags":["x"]}', ('string to array of one at "tags"',)),
        ('{"tags":"[\\"x\\"]"}', '{"tags":["x"]}', ('JSON text to array at "tags"',)),
        (
            '{"counts":"7"}',
            '{"counts":[7]}',
            ('string to array of one at "counts"', 'string to integer at "counts[0]"'),
        ),
        ('{"counts":[1,"2"]}', '{"counts":[1,2]}', ('string to integer at "counts[1]"',)),
        ('{"filter":"{\\"q\\":3}"}', '{"filter":{"q":3}}', ('JSON text to object at "filter"',)),
        (
            '{"filter":{"q":1,"all":[{"q":"2"}]}}',
            '{"filter":{"q":1,"all":[{"q":2}]}}',
            ('string to integer at "filter.all[0].q"',),
        ),
        ('{"limit":"5"}', '{"limit":5}', ('string to integer at "limit"',)),
        ('{"limit":{"q":"5"}}', '{"limit":{"q":5}}', ('string to integer at "limit.q"',)),
        ('{"limit":"null"}', '{"limit":null}', ('string to null at "limit"',)),
        ('{"level":"2"}', '{"level":2}', ('string to integer at "level"',)),
        ('{"note":null,"qty":1}', '{"qty":1}', ('null left out at "note"',)),
        ('{"limit":null}', '{"limit":null}', ()),
        ('{"base":{"a":"1","b":"2"}}', '{"base":{"a":1,"b":2}}', None),
        ('{"pair":["1","2"]}', '{"pair":[1,"2"]}', ('string to integer at "pair[0]"',)),
        ('{"a/b~c":"1"}', '{"a/b~c":1}', ('string to integer at "a/b~c"',)),
        ('{"extra":{"n":"1"}}', '{"extra":{"n":1}}', ('string to integer at "extra.n"',)),
        ('{"qty":"12345678901234567890"}', None, None),
        ('"{\\"qty\\":5}"', '{"qty":5}', ("JSON text to object",)),
        ("{}", "{}", ()),
    ],
)
def test_what_fits_and_what_is_coerced(given: str, expected: str | None, repairs: tuple[str, ...] | None) -> None:
    result = order(given)
    if expected is None:
        assert isinstance(result, Misfit)
        return
    assert isinstance(result, Fits)
    assert result.arguments == expected
    assert repairs is None or result.repairs == repairs


@pytest.mark.parametrize(
    ("given", "path", "rule", "expected", "found"),
    [
        ('{"qty":"five"}', "qty", "type", "integer", '"five"'),
        ('{"qty":2.5}', "qty", "type", "integer", "2.5"),
        ('{"gift":"maybe"}', "gift", "type", "boolean", '"maybe"'),
        ('{"gift":1}', "gift", "type", "boolean", "1"),
        ('{"qty":"11"}', "qty", "maximum", "at most 10", "11"),
        ('{"note":true}', "note", "type", "string", "true"),
        ('{"tags":"[\\"x\\""}', "tags", "type", "array", '"[\\"x\\""'),
        ('{"tags":["x",1.5]}', "tags[1]", "type", "string", "1.5"),
        ('{"filter":{}}', "filter.q", "required", "a value (required)", "nothing"),
        ('{"filter":{"q":null}}', "filter.q", "type", "integer", "null"),
        ('{"extra":{"n":null}}', "extra.n", "type", "integer", "null"),
        ('{"limit":{"q":"x"}}', "limit.q", "type", "integer", '"x"'),
        ('{"limit":"x"}', "limit", "anyOf", "integer or object or null", '"x"'),
        ('{"either":"5"}', "either", "anyOf", "integer or array", '"5"'),
        ('{"level":"3"}', "level", "enum", "one of 1, 2", '"3"'),
        ('{"color":"redd"}', "color", "enum", 'one of "red", "green"', '"redd"'),
        ('{"color":"red."}', "color", "enum", 'one of "red", "green"', '"red."'),
        ('{"day":"tomorrow"}', "day", "format", "text in the format date", '"tomorrow"'),
        ('{"colour":"red"}', "colour", "additionalProperties", "no argument of that name", '"red"'),
        ('{"note":5,"note":"x"}', "", "unique", "each argument only once", '{"note":5,"note":"x"}'),
        ('{"filter":"{\\"q\\":1,\\"q\\":2}"}', "filter", "type", "object", '"{\\"q\\":1,\\"q\\":2}"'),
        ("[]", "", "type", "one JSON object with the arguments", "[]"),
        ('"text"', "", "type", "one JSON object with the arguments", '"text"'),
        ("[" * 5_000, "", "depth", "at most 64 levels of nesting", "[" * 79 + "…"),
        ('{"a":' * 65 + "1" + "}" * 65, "", "depth", "at most 64 levels of nesting", None),
        ('{"note":"' + "x" * 1_000_000 + '"}', "", "size", "at most 1000000 characters of arguments", None),
    ],
)
def test_what_does_not_fit(given: str, path: str, rule: str, expected: str, found: str | None) -> None:
    result = order(given)
    assert isinstance(result, Misfit)
    first = result.problems[0]
    assert (first.path, first.rule, first.expected) == (path, rule, expected)
    assert found is None or first.found == found


@pytest.mark.parametrize("text", ["", "qty=1", '{"price":1e999}'])
def test_arguments_that_are_no_json_are_told_so_and_never_taken_for_none(text: str) -> None:
    result = order(text)
    assert isinstance(result, Misfit)
    (problem,) = result.problems
    assert problem.rule == "json"
    assert problem.expected.startswith("one JSON object with the arguments, {} for none (")
    problem.found.encode()


def test_the_deepest_problem_comes_first_and_few_are_named() -> None:
    result = order('{"colour":1,"size":2,"a":3,"b":4,"c":5,"d":6,"filter":{"q":"x"}}')
    assert isinstance(result, Misfit)
    assert [p.path for p in result.problems] == ["filter.q", "colour", "size", "a", "b"]


def test_of_alternatives_the_one_that_was_meant_is_explained() -> None:
    shapes = {
        "type": "object",
        "properties": {
            "shape": {
                "anyOf": [
                    {"type": "object", "properties": {"kind": {"const": "circle"}, "r": {"type": "number"}}},
                    {"type": "object", "properties": {"kind": {"const": "square"}, "side": {"type": "number"}}},
                ]
            }
        },
    }
    check = checker(json.dumps(shapes).encode())
    wrong = Problem(path="shape.side", rule="type", expected="number", found='"long"')
    assert check('{"shape":{"kind":"square","side":"long"}}') == Misfit(problems=(wrong,))
    vague = check('{"shape":{"kind":"line"}}')
    assert isinstance(vague, Misfit)
    assert vague.problems[0].expected == 'object with kind "circle" or object with kind "square"'


def test_a_rule_without_words_of_its_own_is_named() -> None:
    check = checker(b'{"type":"object","properties":{"a":{"not":{"type":"null"}}},"required":["a"]}')
    result = check('{"a":null}')
    assert isinstance(result, Misfit)
    assert (result.problems[0].path, result.problems[0].rule) == ("a", "not")


def test_many_repairs_are_summed_up() -> None:
    check = checker(b'{"type":"object","properties":{"a":{"type":"array","items":{"type":"integer"}}}}')
    result = check(json.dumps({"a": ["1"] * 1_000}))
    assert isinstance(result, Fits)
    assert json.loads(result.arguments) == {"a": [1] * 1_000}
    assert (len(result.repairs), result.repairs[-1]) == (21, "and 980 more")


def test_a_schema_that_refers_to_itself_in_alternatives_takes_no_exponential_time() -> None:
    """64 levels with two alternatives each would never end, if all of them were tried."""
    node = {"type": "object", "required": ["c", "k"]}
    kinds = [{**node, "properties": {"c": {"$ref": "#"}, "k": {"enum": [None, k]}}} for k in (1, 2)]
    check = checker(json.dumps({"anyOf": [*kinds, {"type": "object", "maxProperties": 0}]}).encode())
    assert isinstance(check('{"k":"3","c":' * 60 + "{}" + "}" * 60), Misfit)


def test_draft_7_is_read_as_such() -> None:
    draft = b"http://json-schema.org/draft-07/schema#"
    check = checker(b'{"$schema":"%s","properties":{"a":{"items":[{"type":"integer"}]}}}' % draft)
    assert check('{"a":["1","x"]}') == Fits(arguments='{"a":[1,"x"]}', repairs=('string to integer at "a[0]"',))


def test_a_pattern_with_look_ahead_is_checked_in_bounded_steps() -> None:
    check = checker(rb'{"type":"object","properties":{"a":{"type":"string","pattern":"^(?=.*\\d)(a+)+$"}}}')
    assert isinstance(check(json.dumps({"a": "a" * 200 + "!1"})), Misfit)


@pytest.mark.parametrize(
    ("schema", "sentence"),
    [
        ("{", "the schema is not JSON: "),
        ("[]", "the schema is []; write a JSON object"),
        ('{"type":"array"}', 'the schema is wrong at "type": arguments are an object, not "array"'),
        ('{"properties":{"a":{"type":"strng"}}}', 'the schema is wrong at "properties.a.type": "strng" is not valid'),
        ('{"properties":{"a":{"pattern":"("}}}', 'the schema is wrong at "properties.a.pattern": "(" is not a "regex"'),
        ('{"properties":3}', 'the schema is wrong at "properties": 3 is not of type "object"'),
        (
            '{"$ref":"#/$defs/gone"}',
            "the schema refers outside of itself: Pointer '/$defs/gone' does not exist",
        ),
        ('{"$ref":"http://127.0.0.1:9/x"}', "the schema refers outside of itself: "),
        ('{"$ref":"file:///etc/passwd"}', "the schema refers outside of itself: "),
        ("[" * 5_000, "the schema is not JSON: "),
        ('{"not":' * 80 + "{}" + "}" * 80, "the schema is nested deeper than 64 levels"),
    ],
)
def test_what_is_no_schema_is_refused_with_its_place(schema: str, sentence: str) -> None:
    with pytest.raises(SchemaError) as caught:
        checker(schema.encode())
    assert str(caught.value).startswith(sentence)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ('{"price":"15.50"}', '{"price":15.5}'),
        ('{"price":"15.00"}', '{"price":15.0}'),
        ('{"note":"1.50","price":"2.10"}', '{"note":"1.50","price":2.1}'),
        ('{"price":"0150"}', None),
        ('{"price":"1,50"}', None),
    ],
)
def test_where_a_grammar_has_only_text_a_number_may_end_in_zeros(given: str, expected: str | None) -> None:
    check = checker(b'{"type":"object","properties":{"price":{"type":"number"},"note":{"type":"string"}}}')
    result = check(given)
    assert (result.arguments if isinstance(result, Fits) else None) == expected
