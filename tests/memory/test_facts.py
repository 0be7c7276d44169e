"""Facts of a space: kept once, found by their words, and refused where they are none."""

from pathlib import Path

import pytest

from forge.agent.memory import Facts, FactStore, InProcessStore, SQLiteStore
from forge.errors import DefinitionError


@pytest.fixture(params=["process", "sqlite"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> FactStore:
    return InProcessStore() if request.param == "process" else SQLiteStore(tmp_path / "memory.db")


async def test_what_is_remembered_is_recalled_until_it_is_forgotten(store: FactStore) -> None:
    ada, rex = Facts(store, "ada"), Facts(store, "rex")
    tea = await ada.remember("  Ada drinks tea, no coffee.\n")
    dog = await ada.remember("Ada's dog is called Rex.")
    assert tea.text == "Ada drinks tea, no coffee."
    assert await ada.remember("Ada drinks tea, no coffee.") == tea
    assert await ada.recall("What does she drink? COFFEE?") == (tea,)
    assert await ada.recall() == (dog, tea)
    assert await ada.recall(limit=1) == (dog,)
    assert await rex.recall("tea") == ()
    assert not await rex.forget(tea)
    assert await ada.forget(tea)
    assert not await ada.forget(tea.id)
    assert await ada.recall("tea") == ()
    assert await ada.recall("coffee dog") == (dog,)


async def test_an_agent_is_shown_what_fits_and_as_many_of_the_newest_as_the_space_says(store: FactStore) -> None:
    facts = Facts(store, "ada", newest=2)
    old, dog, name = [await facts.remember(text) for text in ("Tea is at four.", "Rex is a dog.", "I am Ada.")]
    assert await facts.recall_for("Who?") == (name, dog)
    assert await facts.recall_for("When is tea?") == (old, dog, name)
    assert await Facts(store, "ada").recall_for("Who?") == ()


@pytest.mark.parametrize("query", ['"', "NEAR(tea, 3)", "-tea AND", "'; DROP TABLE fact; --", "tea\x00"])
async def test_the_syntax_of_a_search_is_nothing_but_words(store: FactStore, query: str) -> None:
    facts = Facts(store)
    tea = await facts.remember("Ada drinks tea.")
    assert await facts.recall(query) == (tea,) * (("tea" in query) or not any(map(str.isalnum, query)))
    assert await facts.recall("\ud800 tea " + "x" * 1_000_000) == (tea,)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "the fact is empty"),
        (" \n", "the fact is empty"),
        ("x" * 2001, "has 2001 characters; a fact has at most 2000"),
    ],
)
async def test_what_is_no_fact_is_refused(store: FactStore, text: str, said: str) -> None:
    with pytest.raises(DefinitionError, match=said):
        await Facts(store).remember(text)
    with pytest.raises(DefinitionError, match="space of facts"):
        Facts(store, "a\nb")
    with pytest.raises(DefinitionError, match="limit is -1"):
        await Facts(store).recall("tea", -1)
    assert await Facts(store).recall() == ()
