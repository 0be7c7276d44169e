"""Undo: what is left of a conversation."""

from forge import Agent
from forge.cli.chat.slash import taken_back
from forge.interpreters.scripted import Scripted, call
from stages.memory import Fact, with_facts
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
    first, both = talked("Hi."), talked("Hi.", "What is a?")
    back = taken_back(both)
    assert back is not None
    assert back.message == "What is a?"
    assert back.state.history == first.history
    assert isinstance(back.state.phase, Done)


def test_one_after_the_other_down_to_the_system_prompt() -> None:
    once = taken_back(talked("Hi.", "What is a?"))
    assert once is not None
    twice = taken_back(once.state)
    assert twice is not None
    assert (twice.message, len(twice.state.history)) == ("Hi.", 1)
    assert taken_back(twice.state) is None


def test_facts_that_were_shown_before_it_go_with_it() -> None:
    state = with_facts(talked("Hi."), (Fact(id=1, text="Ann drinks tea.", at=0.0),))
    back = taken_back(state)
    assert back is not None
    assert len(back.state.history) == 1
