"""Valid histories: what a strict server refuses is repaired or told as text, and nothing is lost."""

import pytest

from stages.message import Assistant, History, System, Tool, ToolCall, User
from stages.wire.valid import alternating_history, is_object, system_first, valid_history, with_object_arguments

CALL = ToolCall(id="call_1", name="look", arguments='{"what":"a"}')
ANSWER = Tool(call_id="call_1", name="look", text="7")
AS_TEXT = Assistant(text='[called look: {"what":"a"}]')
RESULT = User(text="Result of look:\n7", kind=ANSWER.kind)


def said(name: str = "look", arguments: str = CALL.arguments) -> Assistant:
    return Assistant(calls=(ToolCall(id="call_1", name=name, arguments=arguments),))


@pytest.mark.parametrize(
    ("history", "valid"),
    [
        ((said(), ANSWER), (said(), ANSWER)),
        ((said(arguments="{'what':'a'}"), ANSWER), None),
        ((said(),), (AS_TEXT,)),
        ((ANSWER,), (RESULT,)),
        ((said(name="look up!"), ANSWER), (Assistant(text='[called look up!: {"what":"a"}]'), RESULT)),
        ((said(arguments="[1]"), ANSWER), (Assistant(text="[called look: [1]]"), RESULT)),
        ((said(), User(text="?"), ANSWER), (AS_TEXT, User(text="?"), RESULT)),
    ],
)
def test_each_call_is_sound_and_answered_at_once(history: History, valid: History | None) -> None:
    found = valid_history(history)
    assert valid_history(found) == found
    if valid is not None:
        assert found == valid


@pytest.mark.parametrize(("given", "told"), [(("", ""), ("call_0", "call_1")), (("c", "c"), ("c_0", "c_1"))])
def test_calls_that_share_an_id_are_told_apart_where_they_are_answered_in_order(
    given: tuple[str, ...], told: tuple[str, ...]
) -> None:
    def exchange(ids: tuple[str, ...]) -> History:
        calls = tuple(ToolCall(id=one, name="look", arguments=CALL.arguments) for one in ids)
        return (Assistant(calls=calls), *(Tool(call_id=one, name="look", text="7") for one in ids))

    assert valid_history(exchange(given)) == exchange(told)
    assert all(not message.calls for message in valid_history(exchange(given)[:2]) if isinstance(message, Assistant))


def test_damaged_arguments_are_repaired_and_what_cannot_be_is_none() -> None:
    mended = with_object_arguments(ToolCall(id="1", name="look", arguments="{'what':'a'}"))
    assert mended is not None
    assert (mended.arguments, bool(mended.repairs)) == ('{"what":"a"}', True)
    assert with_object_arguments(ToolCall(id="1", name="look", arguments="no")) is None


@pytest.mark.parametrize(
    ("text", "sound"),
    [("{}", True), ("[]", False), ("", False), ('{"a":"\\ud800"}', False), ('{"a":' * 200 + "1" + "}" * 200, False)],
)
def test_what_every_server_can_read(text: str, *, sound: bool) -> None:
    assert is_object(text) == sound


def test_a_later_system_message_is_said_by_the_user() -> None:
    history = (System(text="A"), System(text="B"), User(text="C"), System(text="D"))
    assert system_first(history) == (*history[:3], User(text="D"))


def test_neighbours_of_one_role_are_joined() -> None:
    history = (User(text="A"), User(text="B"), Assistant(text="C"), Assistant(text="D"), User(text="E"))
    assert [m.text for m in alternating_history(history)] == ["A\n\nB", "C\n\nD", "E"]
    assert [m.text for m in alternating_history((said(), ANSWER, User(text="Go on.")))] == ["", "7\n\nGo on."]
