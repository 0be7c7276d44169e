"""Tags, tokens, names and keys that are damaged alike, whatever the format: what is read, and at what price."""

import msgspec
import pytest

from stages import rescue

TOOLS = {"get_weather": ("city", "day_of_week"), "run_shell": ("command",), "write_file": ("path", "content")}
PARIS = '{"city":"Paris"}'


@pytest.mark.parametrize(
    "text",
    [
        '<invoke name="get_weather">\nparameter name="city">Paris</parameter>\n</invoke>',
        '<invoke name="get_weather">\n<parameter name="city">Paris/parameter>\n</invoke>',
        '<invoke name="get_weather">\n<parameter name="city">Paris</parameter\n</invoke>',
        'invoke name="get_weather">\nparameter name="city">Parisparameter>\ninvoke>',
        "<tool_call>\n<function=get_weather>\n<parameter=city>\nParis\n<parameter>\n<function>\n<tool_call>",
        "<function=get_weather>\n<parameter=city>\nParis\n</>\n</function>",
        "<tool_call>get_weather\n<ARG_KEY>city</ARG_KEY>\n<arg_value>Paris<arg_value/>\n</tool_call>",
        "<Get_Weather>\n<city >Paris< /city>\n</get_weather>",
        "<get\\_weather>\n<city>Paris</city>\n</get\\_weather>",
        "\uff1cget_weather\uff1e<city>Paris\uff1c/city\uff1e</get_weather>",
        '|tool_call_begin|functions.get_weather:0|tool_call_argument_begin|{"city":"Paris"}|tool_call_end|',
    ],
)
def test_damaged_tags_are_read_as_a_guess(text: str) -> None:
    (call,) = rescue.rescue(text, TOOLS).calls
    assert (call.name, call.arguments, call.cost > 0) == ("get_weather", PARIS, True)


@pytest.mark.parametrize(
    ("text", "arguments"),
    [
        (
            '{"name": "get_weather", "arguments": {" City ": "Paris", "dayOfWeek": 2}}',
            '{"city":"Paris","day_of_week":2}',
        ),
        ('{"name": "functionsget_weather3", "Arguments": {"city": "Paris"}}', '{"city": "Paris"}'),
        ('{"name": "get_weather_2", "arguments": {"city": "Paris"}}', None),
        ('[get_weather(city="Paris"; day_of_week=2)]', '{"city":"Paris","day_of_week":2}'),
        ('[get_weather(city=\u201cParis\u201d\uff0c "day_of_week"=2,)]', '{"city":"Paris","day_of_week":2}'),
        ("[get_weather(city=place)]", None),
    ],
)
def test_keys_and_names_in_other_spellings_and_damaged_python(text: str, arguments: str | None) -> None:
    assert [call.arguments for call in rescue.rescue(text, TOOLS).calls] == ([arguments] if arguments else [])


def test_a_value_with_markup_stays_as_it_is() -> None:
    page = "<b>bold</b> and parameter> of a </parameter, <city>"
    given = f'<parameter name="path">a.md</parameter><parameter name="content">{page}</parameter>'
    text = f'<invoke name="write_file">{given}</invoke>'
    (call,) = rescue.rescue(text, TOOLS).calls
    assert (call.arguments, call.cost) == (f'{{"path":"a.md","content":"{page}"}}', 0)


def test_a_clean_call_is_not_mended() -> None:
    value = "a\\\\_b > c </path <path>"
    text = f'<tool_call>{{"name": "run_shell", "arguments": {{"command": "{value}"}}}}</tool_call>'
    (call,) = rescue.rescue(text, TOOLS).calls
    assert (call.arguments, call.cost) == (f'{{"command": "{value}"}}', 0)


def test_an_object_beside_a_name_gives_no_empty_values() -> None:
    assert not rescue.rescue('<tool_use>\nget_weather|name>\n<arguments>\n{"city": "Paris" "x}', TOOLS).calls


@pytest.mark.parametrize(
    ("text", "command"),
    [
        ("<function=run_shell>\n<parameter=command>\n{}\n</parameter>\n</function>", "cat < input > out"),
        ("<run_shell><command>{}</command></run_shell>", "sort <input >output"),
        ('<invoke name="run_shell"><parameter name="command">{}</parameter></invoke>', "List<name > x = </ name >"),
    ],
)
def test_what_looks_like_a_damaged_tag_in_a_value_stays(text: str, command: str) -> None:
    (call,) = rescue.rescue(text.format(command), TOOLS).calls
    assert (msgspec.json.decode(call.arguments), call.cost) == ({"command": command}, 0)


def test_a_value_is_not_rewritten_where_a_tag_is_mended() -> None:
    given = "<parameter=path>\nmy\\_file.md\n</parameter>\n<parameter=content>\nx\n</parameter"
    text = f"<function=write_file>\n{given}\n</function"
    assert all("my_file" not in call.arguments for call in rescue.rescue(text, TOOLS).calls)


def test_equal_values_of_a_parameter_given_twice_are_a_list() -> None:
    text = "<function=run_shell><parameter=command>5</parameter><parameter=command>5</parameter></function>"
    (call,) = rescue.rescue(text, TOOLS).calls
    assert call.arguments == '{"command":["5","5"]}'


NOTHING_TAKEN = {"search": (), "deploy": (), "pay": ("to", "amount"), "delete_file": ("path",)}


@pytest.mark.parametrize(
    "text",
    [
        '{"name":"pay","description":"Pays","parameters":[{"name":"to","value":"string"},{"name":"amount","value":"number"}]}',
        '[{"name":"deploy","parameters":[]},{"name":"search","parameters":[]}]',
        '{"name":"pay","description":"Pays","parameters":[{"to":"string"}]}',
        "<p>Hello</search></p>",
        "<ul><li>first</li></search></ul>",
        "</deploy>",
        "<path>/tmp/x</path></delete_file>",
        'search: {"total": 3, "hits": []}',
        'search = {"total": 3}',
    ],
)
def test_descriptions_pages_and_results_are_no_calls(text: str) -> None:
    assert rescue.rescue(text, NOTHING_TAKEN).calls == ()


@pytest.mark.parametrize(
    ("text", "content"),
    [
        (
            "<function=write_file>\n<parameter=path>\nx\n</parameter>\n<parameter=content>\n]<]minimax[>[\n</parameter>\n</function>",
            "]<]minimax[>[",
        ),
        ("<write_file><path>x</path><content>a <<path>> b</content></write_file>", "a <<path>> b"),
    ],
)
def test_a_value_that_was_read_without_repair_keeps_its_markup(text: str, content: str) -> None:
    (call,) = rescue.rescue(text, TOOLS).calls
    assert msgspec.json.decode(call.arguments) == {"path": "x", "content": content}


@pytest.mark.parametrize(
    "text",
    [
        "{'name': 'get_weather', 'arguments': {'city': NaN}}",
        "{'name': 'get_weather', 'arguments': {'city': '\ud800'}}",
        'get\\_weather<|x|> {"city": 1e999}',
        '<|x|>get\\_weather {"city": ' + "9" * 5_000 + "}",
    ],
)
def test_no_text_raises(text: str) -> None:
    for name in (call.name for call in rescue.rescue(text, TOOLS).calls):
        assert name == "get_weather"


OF_ITS_OWN = {
    "search": ("query", "limit"),
    "write_file": ("path", "content"),
    "note": ("text",),
    "delete_file": ("path",),
    "deploy": ("env", "version"),
    "get_weather": ("city",),
    "run_shell": ("command", "timeout"),
    "send_email": ("to", "subject"),
}


@pytest.mark.parametrize(
    ("text", "arguments"),
    [
        (
            "<tool_call><function=search><parameter=query>\nends in </tool_call>\n</parameter></function></tool_call>",
            {"query": "ends in </tool_call>"},
        ),
        (
            (
                "<tool_call>\n<function=write_file>\n<parameter=path>\na\n</parameter>\n<parameter=content>\n"
                "x </tool_call>\n</parameter>\n</function>\n</tool_call>"
            ),
            {"path": "a", "content": "x </tool_call>"},
        ),
        ("<tool_call><note><text>ends in </tool_call></text></note></tool_call>", {"text": "ends in </tool_call>"}),
    ],
)
def test_a_closing_tag_at_the_end_of_a_sound_value_stays(text: str, arguments: dict[str, str]) -> None:
    (call,) = rescue.rescue(text, OF_ITS_OWN).calls
    assert (msgspec.json.decode(call.arguments), call.cost) == (arguments, 0)


def test_tags_that_close_in_the_wrong_order_are_swapped_if_all_are_closed() -> None:
    (call,) = rescue.rescue("<delete_file><path>a.md</delete_file></path>", OF_ITS_OWN).calls
    assert (msgspec.json.decode(call.arguments), call.cost) == ({"path": "a.md"}, 1)
    (call,) = rescue.rescue("<tool_call><function=note><parameter=text>in </tool_call></parameter>", OF_ITS_OWN).calls
    assert (msgspec.json.decode(call.arguments), call.cost) == ({"text": "in </tool_call>"}, 1)


@pytest.mark.parametrize(
    "text",
    [
        "<delete_file><path>/tmp/a\n</delete_file></path> b</path></delete_file>",
        "<write_file>\n<path>a.html</path>\n<content>x\n</write_file>\n</content>\nmore</content></write_file>",
        '{"server": {"name": "deploy"}, "args": {"env": "prod"}}',
        '{"event": {"action": "delete_file"}, "args": {"path": "x"}}',
        '[{"tool": "delete_file"}, {"input": {"path": "a"}}]',
        '## delete file\n```json\n{"path": "/tmp"}\n```',
        'I would delete file: {"path": "/tmp"}',
        "<menu><item>delete file</item><path>/tmp</path></menu>",
        "<api><method>delete file</method><path>/v1/files</path></api>",
        (
            '[TOOL_CALLS] [{"name": "send_e:mail",) "arguments": {"to": "ops@example.net", "subject": "disk full"}}, '
            '{"name": "run_shell", "arguments": {"command": "df -h /var", "timeout": 5}}]'
        ),
        '<tool_call>[1, {"name": "delete_file", "arguments": {"path": "b"}}]</tool_call>',
    ],
)
def test_what_is_valid_or_may_go_on_is_not_mended(text: str) -> None:
    assert rescue.rescue(text, OF_ITS_OWN).calls == ()


def test_a_call_that_was_closed_behind_its_name_is_read() -> None:
    (call,) = rescue.rescue('{"name": "search"}, "arguments": {"query": "a"}}', OF_ITS_OWN).calls
    assert (call.name, call.arguments, call.cost) == ("search", '{"query": "a"}', 1)


def test_a_name_in_a_value_is_not_rewritten() -> None:
    value = "the get_weather tool: get weather\nbye"
    text = f"I use search.\n<tool_call>\n<function=note>\n<parameter=text>\n{value}\n</parameter\n</function"
    (call,) = rescue.rescue(text, OF_ITS_OWN).calls
    assert msgspec.json.decode(call.arguments) == {"text": value}


@pytest.mark.parametrize(
    ("text", "arguments"),
    [
        ("<set_pref><key>scope</key><value>5</value></set_pref>", {"key": "scope", "value": "5"}),
        ("<create_param><name>type</name><value>int</value></create_param>", {"name": "type", "value": "int"}),
        (
            "<delete_file><name>path</name><value>a</value><name>path</name><value>b</value></delete_file>",
            {"path": ["a", "b"]},
        ),
        (
            "<search><name>query</name><value>a</value><name>limit</name><value>3</value></search>",
            {"query": "a", "limit": "3"},
        ),
    ],
)
def test_elements_with_a_name_and_a_value_are_arguments_unless_the_tool_takes_these(
    text: str, arguments: dict[str, object]
) -> None:
    taken = {"set_pref": ("key", "value", "scope"), "create_param": ("name", "value", "type"), **OF_ITS_OWN}
    (call,) = rescue.rescue(text, taken).calls
    assert msgspec.json.decode(call.arguments) == arguments


NOTED = {"delete_file": ("path",), "search": ("query", "limit"), "note": ("text",), "list": ()}


@pytest.mark.parametrize(
    "text",
    [
        "https://host/odata/delete_file(path='x')",
        '[docs://delete_file(path="x")]',
        'file:///delete_file("x")',
        'Foo::delete_file(path="x")',
        "example.com/list()",
        'The file was removed by this.\n[Foo::delete_file(path="x")]',
    ],
)
def test_addresses_paths_and_qualified_names_are_no_calls(text: str) -> None:
    assert rescue.rescue(text, NOTED).calls == ()


@pytest.mark.parametrize(
    ("text", "arguments"),
    [
        ('default_api:search(query="x")', '{"query":"x"}'),
        ('[tools/search(query="x")]', '{"query":"x"}'),
        ('search("cats", "10")', '{"query":"cats","limit":"10"}'),
        ('note("TODO: buy milk")', '{"text":"TODO: buy milk"}'),
        ('note("FOO=bar make")', '{"text":"FOO=bar make"}'),
        ('{"arguments": {"query": ["a"]}, "name": "search"', '{"query": ["a"]}'),
    ],
)
def test_what_looks_like_a_prefix_a_keyword_or_a_cut_is_read_as_it_is(text: str, arguments: str) -> None:
    (call,) = rescue.rescue(text, NOTED).calls
    assert msgspec.json.decode(call.arguments) == msgspec.json.decode(arguments)


@pytest.mark.parametrize(
    "text",
    [
        '<tool_call>\n{"name": "run\n<tool_call>\n{"name": "run_shell", "arguments": {"command": "ls"}}',
        "I look.\n<run_shell>\n<command>l\n<run_shell>\n<command>ls</command>\n</run_shell>",
        '[TOOL_CALLS][{"name": "run_shell", "arguments": {"command": "ls"}}]'.replace('"', "&quot;"),
        '<tool_call>`{"name": "run_shell", "arguments": {"command": "ls"}}`</tool_call>',
        '<|im_start|>assistant\n>> run_shell --command="ls"<|im_end|>',
        "call:run_shell{command:\N{SECTION SIGN}ls\N{SECTION SIGN}}",
    ],
)
def test_what_was_begun_twice_or_escaped_throughout_is_a_guess(text: str) -> None:
    (call,) = rescue.rescue(text, TOOLS).calls
    assert msgspec.json.decode(call.arguments) == {"command": "ls"}
    assert call.cost


@pytest.mark.parametrize(
    "tag",
    ['<call tool="run_shell" command="ls timeout="3"/>', "<tool name=run_shell command=ls'></tool>"],
)
def test_a_tag_whose_quotation_marks_do_not_match_is_no_call_without_arguments(tag: str) -> None:
    found = rescue.rescue(tag, TOOLS)
    assert all(call.cost for call in found.calls)


@pytest.mark.parametrize(
    "text",
    [
        '**Tool:** write_file\n**Result:**\n```json\n{"path": "/x", "content": "b"}\n```',
        'Do not use: write_file\nExample:\n```json\n{"path": "/x", "content": "b"}\n```',
        'write_file(path="/x", content="b")  # do not run this',
        'Format:\n1. Action: write_file\n2. Action Input: {"path": "/x", "content": "b"}',
        """<function=write_file>'{"path": "/x", "content": "b"</function>""",
        """[TOOL_CALLS]write_file[ARGS]'{"path": "/x", "content": "a\\\\nb"}'""",
    ],
)
def test_a_call_that_may_be_a_report_an_example_or_cut_off_is_a_guess(text: str) -> None:
    assert all(call.cost for call in rescue.rescue(text, TOOLS).calls)


def test_two_line_breaks_are_one_only_where_nothing_else_is_read() -> None:
    (call,) = rescue.rescue('write_file(path="/x", content="""a\n\nb""")', TOOLS).calls
    assert msgspec.json.decode(call.arguments)["content"] == "a\n\nb"


def test_a_list_of_calls_stands_alone_behind_a_thought_in_its_line() -> None:
    text = "<think>I look for the city first.</think>[get_weather(city='Paris')]<|tool_call_end|>"
    (call,) = rescue.rescue(text, TOOLS).calls
    assert (call.name, call.arguments) == ("get_weather", PARIS)
