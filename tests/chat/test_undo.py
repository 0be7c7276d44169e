"""Undo: what is left of a conversation."""

from msgspec.structs import replace

from forge import Agent
from forge.cli.chat.slash import taken_back
from forge.interpreters.scripted import Scripted, call
from stages.memory import Fact, with_facts
from stages.message import User
from stages.state import Done, State
from tests.flows import look


def talked(*messages: str) -> State:
    model = Scripted(["Hello.", call("look", what="a"), "It is 7."])
    agent = Agent("helper", backend=model, tools=[look], instructions="You help.")
    for message in messages:
        agent.process_sync(message).unwrap()
    assert agent.state is not None
    return agent.state


def test_the_last_message_and_all_that_came_of_it_are_gone() -> None:
    back = taken_back(talked("Hi.", "What is a?"))
    assert back is not None
    left, message = back
    assert message == "What is a?"
    assert left.history == talked("Hi.").history
    assert isinstance(left.phase, Done)
    again = taken_back(left)
    assert again is not None
    left, message = again
    assert (message, len(left.history)) == ("Hi.", 1)
    assert taken_back(left) is None


def test_facts_that_were_shown_before_it_go_with_it() -> None:
    before = talked("Hi.")
    told = with_facts(before, (Fact(id=1, text="Ann drinks tea.", at=0.0),))
    back = taken_back(replace(told, history=(*told.history, User(text="And now?"))))
    assert back is not None
    assert back[0].history == before.history
    assert len(told.history) == len(before.history) + 1
