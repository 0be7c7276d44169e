"""Prompt use: what the next prompt takes, by what it is taken for."""

from forge import Workflow, run_sync, tool
from forge.interpreters.scripted import Line, Scripted, call
from stages.saved import load, save
from stages.state import State
from stages.tokens import tokens_of
from stages.view.prompt import prompt_use


@tool(effect="read")
def look(what: str) -> str:
    """Look something up."""
    return "word " * 100


def ended(*answers: int) -> State:
    workflow = Workflow("w", tools=[look], on_text="accept", system_prompt="You look things up. " * 20)
    script: list[Line] = [*(call("look", what=str(n)) for n in range(len(answers))), "Done."]
    return run_sync(workflow, "Go.", backend=Scripted(script)).unwrap().state


def test_the_parts_are_those_of_the_prompt() -> None:
    use, ledger = prompt_use(ended(1)), ended(1).ledger
    assert use.system > 80
    assert use.tools > 20
    assert use.messages > 100
    prompt = tokens_of(ledger.prompt_size, ledger.tokens_per_character, ledger.report)
    assert prompt <= use.used <= prompt + 20, "the answer came after the prompt"
    assert use.limit == 8192 - 1024 == ledger.context_tokens


def test_only_the_messages_grow_and_a_saved_run_takes_the_same() -> None:
    short, long = prompt_use(ended(1)), prompt_use(ended(1, 2, 3))
    assert (short.system, short.tools) == (long.system, long.tools)
    assert long.messages > 2 * short.messages
    state = ended(1)
    assert prompt_use(load(save(state))) == prompt_use(state)
