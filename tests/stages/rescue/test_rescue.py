"""What is rescued from text, with what repairs, and what is left alone."""

import msgspec
import pytest
from msgspec import Raw
from msgspec.structs import replace

from forge.testing.strategies import GRAMMARS, call_text
from stages.effect import Reply
from stages.options import OptionError
from stages.reading.replies import reader
from stages.reasoning import split_reasoning
from stages.rescue import FAMILIES, Claim, Family, Names, Read, rescue, rescuer
from stages.rules import Rules
from stages.tool import ToolSpec
from tests.rescue_corpus import Case, Meant, arguments, cases, parameters, run_at_once

NAMES = ("get_weather", "write_file", "set_timer")
KINDS = ("clean", "damage", "torn", "recorded")
PARAMETERS = parameters({name for case in cases("negative") for name in case.names})


@pytest.mark.parametrize("case", [pytest.param(c, id=c.id) for kind in KINDS for c in cases(kind)])
def test_a_reply_gives_the_calls_that_it_means_and_no_others(case: Case) -> None:
    _, text = split_reasoning(case.text)
    found = rescue(text, case.names)
    assert tuple(Meant(call.name, arguments(call.arguments)) for call in found.calls) == case.calls
    assert found.unknown == case.unknown
    assert bool(found.damage) is case.damage


@pytest.mark.parametrize("case", [pytest.param(c, id=c.id) for c in cases("negative")])
def test_no_tool_that_writes_runs_from_a_text_that_calls_nothing(case: Case) -> None:
    tools = {name: PARAMETERS[name] for name in case.names}
    assert not run_at_once(case.text, tools)
    assert not run_at_once(case.text, tools, "terminal")


@pytest.mark.parametrize("kind", KINDS)
def test_reasoning_in_the_text_changes_nothing(kind: str) -> None:
    for case in cases(kind):
        found = rescue(case.text, case.names)
        assert tuple(Meant(call.name, arguments(call.arguments)) for call in found.calls) == case.calls, case.id


def test_the_corpus_is_a_third_damage_and_a_third_negatives() -> None:
    everything = [case for kind in (*KINDS, "negative") for case in cases(kind)]
    damaged = [*cases("damage"), *cases("torn")]
    negatives = [case for case in everything if not case.calls and not case.damage]
    assert len(everything) >= 200
    assert 3 * len(damaged) >= len(everything)
    assert 3 * len(negatives) >= len(everything)
    assert len({case.text for case in everything}) == len(everything)


@pytest.mark.parametrize(
    ("text", "repairs", "cost"),
    [
        ('{"name": "get_weather", "arguments": {"city": "Paris"}}', (), 0),
        ('{"name": "get_weather", "arguments": {"city": "Paris",}}', ("trailing_comma",), 0),
        ("{'name': 'get_weather', 'arguments': {'city': 'Paris'}}", ("single_quotes",), 0),
        ('{"name": "get_weather", "arguments": {"city": "Paris"}', ("missing_closer",), 1),
        ('{"name": "Get-Weather", "arguments": {"city": "Paris"}}', ("name",), 0),
        ('{"name": "get_weather", "arguments": "{\\"city\\": \\"Paris\\"}"}', ("arguments_as_text",), 0),
        ('{name: "get_weather", arguments: {city: "Paris"}}', ("bare_key",), 0),
        ('<tool_call>{"name": "get_weather", "arguments": {"city": "Paris"}</tool_call>', ("closer",), 0),
        ('{"name": "get_weather", "arguments": {"city": "C:\\Paris"}}', ("backslash",), 0),
        ('{"name": "get_weather", "arguments": {"city": "C:\\new\\Paris"}}', ("mixed_backslash",), 2),
        ('{"name": "get_weather", "arguments": {"city": "the "City""}}', ("inner_quotes",), 3),
        ('{"name": "set_timer", "arguments": {"seconds": 090}}', ("loose_number",), 0),
        ('{"name" "get_weather", "arguments" {"city": "Paris"}}', ("missing_colon",), 0),
        ('<tool_call>"name": "get_weather", "arguments": {"city": "Paris"}}</tool_call>', ("missing_opener",), 0),
        ('{"name": "get_weather", "arguments": "city": "Paris"}}', ("missing_opener",), 0),
        (
            "\uff5b\u201cname\u201d\uff1a\u201cget_weather\u201d\uff0c\u201carguments\u201d\uff1a{}}\uff5d",
            ("full_width", "smart_quotes"),
            0,
        ),
        ("<get_weather><city>A &amp; B</city></get_weather>", ("entities",), 0),
    ],
)
def test_each_mend_is_named_and_priced(text: str, repairs: tuple[str, ...], cost: int) -> None:
    (call,) = rescue(text, NAMES).calls
    assert call.repairs == repairs
    assert call.cost == cost


@pytest.mark.parametrize(
    "text",
    [
        '{"name": "now"}',
        '```json\n{"name": "now"}\n```',
        '{"tool": "now"}',
        '{"name": "now", "arguments": []}',
        '<tool_call>{"name": "now", "arguments": []}</tool_call>',
        "```tool_code\nnow()\n```",
        "<now/>",
    ],
)
def test_a_tool_without_parameters_needs_no_arguments(text: str) -> None:
    (call,) = rescue(text, {"now": (), "get_weather": ("city",)}).calls
    assert (call.name, call.arguments) == ("now", "{}")
    assert (
        not rescue(text.replace("now", "get_weather"), {"now": (), "get_weather": ("city",)}).calls or "[" not in text
    )


def test_an_attribute_needs_no_quotes() -> None:
    (call,) = rescue("<get_weather city=Paris />", NAMES).calls
    assert call.arguments == '{"city":"Paris"}'


def test_valid_arguments_come_out_as_they_were_written() -> None:
    written = '{ "seconds" : 12345678901234567890 , "label": "a\\u0301" }'
    (call,) = rescue(f'<tool_call>{{"name": "set_timer", "arguments": {written}}}</tool_call>', NAMES).calls
    assert call.arguments == written


def test_what_surrounds_the_calls_is_kept_without_their_markup() -> None:
    text = (
        "Looking.\n<tool_call>\n"
        '{"name": "get_weather", "arguments": {}}\n</tool_call>\n<tool_call>\n'
        '{"name": "set_timer", "arguments": {}}\n</tool_call>\nDone.<|im_end|>'
    )
    found = rescue(text, NAMES)
    assert found.rest.split() == ["Looking.", "Done."]
    spans = [text[slice(*call.span)] for call in found.calls]
    assert all(span.startswith("<tool_call>") and span.endswith("</tool_call>") for span in spans)


def test_text_without_calls_is_left_as_it_is() -> None:
    text = 'Use `{"name": "get_weather", "arguments": {}}` for that.'
    assert rescue(text, NAMES).rest == text


def test_a_name_that_fits_two_tools_is_nobody_s() -> None:
    found = rescue('{"name": "GetWeather", "arguments": {}}', ("get_weather", "get-weather"))
    assert found.calls == ()
    assert found.damage == "it can be read as a call of each of get-weather, get_weather."


def test_a_call_cut_off_after_a_complete_one_is_said_and_the_first_kept() -> None:
    text = (
        '<tool_call>\n{"name": "get_weather", "arguments": {}}\n</tool_call>\n<tool_call>\n{"name": "set_timer", "arg'
    )
    found = rescue(text, NAMES)
    assert [call.name for call in found.calls] == ["get_weather"]
    assert found.damage is not None


def _shouting(name: str, arguments: str, cost: int) -> Family:
    """A family that reads every exclamation mark as the same call."""

    def read(_text: str, start: int, _names: Names) -> Read:
        claim = Claim(name="set_timer", arguments=arguments, cost=cost)
        return Read(start=start, end=start + 1, claims=(claim,), keep="")

    return Family(name=name, first="!", opener="!", read=read)


def test_of_several_readings_of_one_place_the_cheapest_counts() -> None:
    dear, cheap = _shouting("dear", '{"seconds":1}', 2), _shouting("cheap", '{"seconds":2}', 1)
    for families in ((dear, cheap), (cheap, dear)):
        (call,) = rescuer(families)("Go!", NAMES).calls
        assert (call.origin, call.arguments) == ("cheap", '{"seconds":2}')


def test_readings_that_cost_the_same_and_differ_are_nobody_s() -> None:
    one, other = _shouting("one", '{"seconds":1}', 1), _shouting("other", '{"seconds":2}', 1)
    found = rescuer((one, other))("Go!", NAMES)
    assert found.calls == ()
    assert found.damage == 'it can be read in two ways, as set_timer({"seconds":1}) or as set_timer({"seconds":2}).'
    same = rescuer((one, _shouting("same", '{ "seconds": 1 }', 1)))("Go!", NAMES)
    assert [call.origin for call in same.calls] == ["one"]


def test_a_call_that_markup_and_json_both_name_is_one_call() -> None:
    wrapped = '<function=get_weather>{"name": "get_weather", "arguments": {"city": "Paris"}}</function>'
    (call,) = rescue(wrapped, NAMES).calls
    assert (call.arguments, call.repairs, call.cost) == ('{"city": "Paris"}', ("wrapped_twice",), 1)
    (kept,) = rescue('[TOOL_CALLS]set_timer[ARGS]{"name": "get_weather", "arguments": {}}', NAMES).calls
    assert (kept.name, kept.arguments) == ("set_timer", '{"name": "get_weather", "arguments": {}}')


def test_calls_on_one_line_are_read_however_long_it_is() -> None:
    call = '<tool_call>{"name": "get_weather", "arguments": {"city": "Paris"}}</tool_call>'
    assert len(rescuer(FAMILIES, most=60)(call * 60, NAMES).calls) == 60
    quoted = f'The manual says "Use {call[11:-12]}" somewhere.'
    assert len(rescue(f"{call} {quoted}", NAMES).calls) == 1


def test_calls_after_as_many_as_a_reply_may_make_are_not_read_and_it_is_said() -> None:
    call = '<tool_call>{"name": "%s", "arguments": {"city": "Paris"}}</tool_call>\n'
    found = rescuer(FAMILIES, most=3)("Let me see. " + 2 * (call % "get_weather") + 3 * (call % "other"), NAMES)
    assert (len(found.calls), found.unknown, found.rest) == (2, ("other",), "Let me see.")
    assert found.damage == "calls after the first 3 are left out."
    whole = rescuer(FAMILIES, most=3)(3 * (call % "get_weather") + "Done.", NAMES)
    assert (len(whole.calls), whole.rest, whole.damage) == (3, "Done.", None)


def test_a_text_that_seems_to_begin_calls_without_end_is_given_up_and_it_is_said() -> None:
    call = '{"name": "get_weather", "arguments": {}}\n'
    found = rescue(call + '{"a":;' * 20_000 + call, NAMES)
    assert len(found.calls) == 1
    assert found.damage is not None
    assert rescue('{"a":;' * 20_000, NAMES).damage is None


@pytest.mark.parametrize(
    ("text", "arguments", "repairs", "cost"),
    [
        ("Action: get_weather\nAction Input: Paris", '{"city":"Paris"}', ("plain_input",), 0),
        ("Action: get_weather\nAction Input: 'Paris'\nObservation: 21", '{"city":"Paris"}', ("plain_input",), 0),
        ("<tool>get_weather</tool><tool_input>Paris</tool_input>", '{"city":"Paris"}', ("plain_input",), 0),
        ('get_weather("Paris")', '{"city":"Paris"}', ("positional",), 0),
        ('set_timer(90, "tea")', '{"seconds":90,"label":"tea"}', ("positional",), 2),
        ('set_timer(90, label="tea")', '{"seconds":90,"label":"tea"}', ("positional",), 1),
        ('{"tool": "get_weather", "city": "Paris"}', '{"city":"Paris"}', ("flat_arguments",), 0),
        ('{"get_weather": {"city": "Paris"}}', '{"city": "Paris"}', (), 0),
    ],
)
def test_values_without_a_name_are_understood_where_the_parameters_are_known(
    text: str, arguments: str, repairs: tuple[str, ...], cost: int
) -> None:
    (call,) = rescue(text, {"get_weather": ("city",), "set_timer": ("seconds", "label")}).calls
    assert (call.arguments, call.repairs, call.cost) == (arguments, repairs, cost)
    assert rescue(text, NAMES).calls == ()


@pytest.mark.parametrize(
    "text",
    [
        "Action: set_timer\nAction Input: 90, tea",
        'set_timer(90, "tea", 3)',
        'set_timer(seconds=90, "tea", seconds=1)',
        '{"tool": "get_weather", "town": "Paris"}',
        '{"get_weather": {"temp": 21}}',
        "<tool>set_timer</tool><tool_input>90</tool_input>",
    ],
)
def test_and_only_there(text: str) -> None:
    assert rescue(text, {"get_weather": ("city",), "set_timer": ("seconds", "label")}).calls == ()


def test_a_family_of_one_s_own_is_one_value_more() -> None:
    def read(text: str, start: int, names: Names) -> Read | None:
        end = text.index("!", start)
        return Read(start=start, end=end + 1, claims=(Claim(name=text[start + 1 : end], arguments="{}"),), keep="")

    shout = Family(
        name="shout", first="\N{INVERTED EXCLAMATION MARK}", opener="\N{INVERTED EXCLAMATION MARK}", read=read
    )
    found = rescuer((*FAMILIES, shout))("Now \N{INVERTED EXCLAMATION MARK}get_weather!", NAMES)
    assert [(call.name, call.origin) for call in found.calls] == [("get_weather", "shout")]


@pytest.mark.parametrize(
    ("first", "opener", "says"),
    [
        ("<", r"<<(call|run)\s", "has a capturing group; write (?:…) instead of (…)"),
        ("<", r"<(?P<more><)call", "has a capturing group"),
        ("<", r"<<call(\s", "is not a regular expression: missing ), unterminated subpattern"),
        ("<", "<<call)|(?:<", "is not a regular expression"),
        ("<", "(?i)<call", "sets flags for the whole expression"),
        ("@", "<<", "first is '@', but opener '<<' begins with '<'"),
        ("", "<<", "first is '', but opener '<<' begins with '<'"),
        ("<", r"<<|\[\[", "begins with '<['"),
        ("<[", "<<", "begins with '<'"),
        ("<", "", "must begin with a literal character"),
        ("<", "[<]call", "must begin with a literal character"),
        ("^", "^call", "must begin with a literal character"),
        ("<", "<?<call", "must begin with a literal character"),
    ],
)
def test_a_family_that_could_not_be_searched_for_is_refused_when_it_is_made(first: str, opener: str, says: str) -> None:
    with pytest.raises(OptionError) as caught:
        Family(name="angle", first=first, opener=opener, read=lambda *_: None)
    assert str(caught.value).startswith("Family 'angle': ")
    assert says in str(caught.value)


def test_options_of_the_wrong_type_are_told_when_a_family_or_a_claim_is_made() -> None:
    with pytest.raises(OptionError, match="Family: read is None; it must be a function"):
        Family(name="angle", first="<", opener="<<", read=None)  # type: ignore[arg-type]  # what is refused
    with pytest.raises(
        OptionError, match=r"Claim: arguments is {'city': 'Rome'}; it must be the JSON text of an object"
    ):
        Claim(name="get_weather", arguments={"city": "Rome"})  # type: ignore[arg-type]  # what people write
    with pytest.raises(OptionError, match=r"Family: read: <lambda> cannot be called as .*: too many"):
        Family(name="angle", first="<", opener="<<", read=lambda text, start: None)  # type: ignore[arg-type, misc]  # wrong on purpose
    with pytest.raises(OptionError, match="Claim: name is None; it must be a string"):
        Claim(name=None, arguments="{}")  # type: ignore[arg-type]  # what a search that found nothing gives


@pytest.mark.parametrize("opener", [r"<<call\s", r"<<(?:call|run)\s", r"(?:<|<<)call"])
@pytest.mark.parametrize("place", [0, len(FAMILIES)])
def test_forge_s_own_families_are_read_beside_one_with_the_same_first_character(opener: str, place: int) -> None:
    mine = Family(name="angle", first="<", opener=opener, read=lambda *_: None)
    beside = rescuer((*FAMILIES[:place], mine, *FAMILIES[place:]))
    text = '<tool_call>{"name": "get_weather", "arguments": {"city": "Paris"}}</tool_call>'
    assert beside(text, NAMES) == rescue(text, NAMES)
    assert beside(text, NAMES).calls


@pytest.mark.parametrize(
    ("text", "reasoning", "rest"),
    [
        ("<think>\na\n</think>\n\nb", "a", "b"),
        ("a</think>b", "a", "b"),
        ("<thinking>a</thinking>b", "a", "b"),
        ("<Think>a</Think>b", "a", "b"),
        ("[THINK]a[/THINK]b", "a", "b"),
        ("<|channel>thought\na<channel|>b", "a", "b"),
        ("<|channel|>analysis<|message|>a<|end|>b", "a", "b"),
        ("<|START_THINKING|>a<|END_THINKING|>b", "a", "b"),
        ("<seed:think>a</seed:think>b", "a", "b"),
        ("\u25c1think\u25b7a\u25c1/think\u25b7b", "a", "b"),
        ("a<|close|>think<|sep|>b", "a", "b"),
        ("<think>a", "a", ""),
        ("<think>a\n<tool_call>b</tool_call>", "a", "<tool_call>b</tool_call>"),
        ("<think>a</think>b<think>c</think>d", "a\n\nc", "bd"),
        ("Write `<think>` first.", "", "Write `<think>` first."),
        ('{"text": "</think>"}', "", '{"text": "</think>"}'),
        ("no tags", "", "no tags"),
    ],
)
def test_reasoning_is_told_from_text(text: str, reasoning: str, rest: str) -> None:
    assert split_reasoning(text) == (reasoning, rest)


@pytest.mark.parametrize("family", GRAMMARS)
@pytest.mark.parametrize("tag", ["</think>", "</thinking>", "[/THINK]"])
@pytest.mark.parametrize(
    "reply", ["CALL\n\nTAG\nNo, I will not.", "I could do CALL\nTAG\nNo.", "CALL\nTAG", "```\nCALL\n```\nTAG\nNo."]
)
def test_a_closing_tag_alone_takes_the_call_before_it_back(family: str, tag: str, reply: str) -> None:
    called = call_text(family, "get_weather", {"city": "</think>", "days": 2} if family == "bare" else {"city": "Rome"})
    _, text = split_reasoning(reply.replace("CALL", called).replace("TAG", tag))
    assert rescue(text, {"get_weather": ("city", "days")}).calls == ()


M3 = "]<]minimax[>["
INVOKED = '<invoke name="get_weather"><parameter name="city">Rome</parameter></invoke>'


@pytest.mark.parametrize(
    "called",
    [
        INVOKED,
        f"<function_calls>\n{INVOKED}\n</function_calls>",
        f"<minimax:tool_call>{INVOKED}</minimax:tool_call>",
        "<tool_calls><tool_call>get_weather<tool_sep><arg_key>city</arg_key><arg_value>Rome</arg_value></tool_call></tool_calls>",
        f'{M3}<tool_call>{M3}<invoke name="get_weather">{M3}<city>Rome{M3}</city>{M3}</invoke>{M3}</tool_call>',
    ],
)
def test_markup_around_a_call_does_not_part_it_from_what_is_said_of_it(called: str) -> None:
    tools = {"get_weather": ("city",)}
    assert len(run_at_once(called, tools)) == 1
    for said in ("{} is what the page said.", "{}\nThis is only an example.", "{}\n\nShould I run this?", "Is it {}?"):
        assert not run_at_once(said.replace("{}", called), tools)


def test_one_in_an_argument_does_not() -> None:
    for city in ("</think>", "}\n</think>", 'a \\" }</think>'):
        called = call_text("bare", "get_weather", {"city": city})
        _, text = split_reasoning(called)
        assert len(rescue(text, NAMES).calls) == 1


def test_arguments_are_json_objects() -> None:
    for kind in KINDS:
        for case in cases(kind):
            for call in rescue(case.text, case.names).calls:
                msgspec.json.decode(call.arguments, type=dict[str, object])


REFUND = ToolSpec(
    name="refund",
    description="Pay back.",
    parameters=Raw(b'{"type":"object","properties":{"order":{"type":"string"},"amount":{"type":"number"}}}'),
    effect="read",
)
INVOKED = (
    '<invoke name="refund"><parameter name="order">1.10</parameter><parameter name="amount">15.50</parameter></invoke>'
)


def test_a_number_in_xml_is_what_its_text_says_and_text_stays_text() -> None:
    read = reader(Rules(tools=(REFUND,)), in_text=False, families=FAMILIES)
    (call,) = read(Reply(text=INVOKED)).calls
    assert (call.arguments, call.wrong) == ('{"order":"1.10","amount":15.5}', None)
    (same,) = read(Reply(text='{"name": "refund", "arguments": {"amount": "15.50"}}')).calls
    assert same.arguments == '{"amount":15.5}'


@pytest.mark.parametrize(
    ("text", "calls", "rest"),
    [
        ("Action: search[cats and dogs]", (Meant("search", {"query": "cats and dogs"}),), ""),
        ("Action: search[cats]\nObservation: 5 cats", (Meant("search", {"query": "cats"}),), ""),
        ("Action: list_files[]", (Meant("list_files", {}),), ""),
        ("Action: search[cats] or dogs", (), "Action: search[cats] or dogs"),
    ],
)
def test_the_form_of_the_react_paper(text: str, calls: tuple[Meant, ...], rest: str) -> None:
    found = rescue(text, {"search": ("query",), "list_files": ()})
    assert tuple(Meant(call.name, arguments(call.arguments)) for call in found.calls) == calls
    assert found.rest == rest


def test_what_is_passed_over_without_a_search_has_nothing_in_it() -> None:
    searched = rescuer(tuple(replace(family, words=None) for family in FAMILIES))
    texts = [case.text for kind in (*KINDS, "negative") for case in cases(kind)]
    assert [text for text in texts if rescue(text, ()) != searched(text, ())] == []


def test_a_list_of_other_calls_that_breaks_off_is_code() -> None:
    assert rescue("[print(1),", NAMES).damage is None
    assert rescue("[get_weather(city='Oslo'),", NAMES).damage is not None
    assert rescue("So:\nlook(", NAMES).rest == "So:\nlook("


@pytest.mark.parametrize(
    ("wrapped", "rest"),
    [
        ("<task>\n{}\n</task>", ""),
        ("Let me look.\n```tool_exec\n{}\n```", "Let me look."),
        ("<a><b>\n{}\n</b></a>", ""),
        ("```output\n{}\n```", None),
        ("```js\n{}\n```", None),
        ("<example>\n{}\n</example>", None),
        ("[TOOL_RESULTS]{}[/TOOL_RESULTS]", None),
        ("<|im_start|>user\n{}<|im_end|>", None),
    ],
)
@pytest.mark.parametrize(
    "call",
    [
        "name: get_weather\narguments:\n  city: Oslo",
        "&lt;get_weather&gt;\n&lt;city&gt;Oslo&lt;/city&gt;\n&lt;/get_weather&gt;",
    ],
)
def test_a_call_in_a_wrapper_of_any_word_is_a_guess_unless_the_wrapper_says_that_it_is_none(
    wrapped: str, rest: str | None, call: str
) -> None:
    found = rescue(wrapped.format(call), {"get_weather": ("city",)})
    if rest is None:
        assert found.calls == ()
    else:
        (one,) = found.calls
        assert (one.name, arguments(one.arguments), found.rest) == ("get_weather", {"city": "Oslo"}, rest)
        assert one.cost > 0


def test_without_families_nothing_is_found() -> None:
    text = '{"name": "get_weather", "arguments": {}}'
    assert rescuer(())(text, NAMES).rest == text
