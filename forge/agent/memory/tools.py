"""Tools for a model to manage facts by itself: remember, find, forget."""

from collections.abc import Callable

from forge.agent.memory.protocol import Facts
from forge.errors import DefinitionError, ToolResolutionError
from forge.tools.definition import tool


def fact_tools(facts: Facts) -> tuple[Callable[..., object], ...]:
    """`remember_fact`, `find_facts` and `forget_fact` for these facts, as tools of a workflow or an agent."""

    @tool(effect="write", idempotent=True)
    async def remember_fact(fact: str) -> str:
        """Remember a lasting fact about the user or the work for later conversations, as one complete sentence.

        Args:
            fact: The sentence, understandable without this conversation.
        """
        try:
            kept = await facts.remember(fact)
        except DefinitionError as error:
            raise ToolResolutionError(str(error)) from None
        return f"Remembered as fact {kept.id}."

    @tool(effect="read")
    async def find_facts(query: str) -> list[str]:
        """Find facts that were remembered in earlier conversations.

        Args:
            query: Words that the facts may hold.
        """
        found = await facts.recall(query)
        if not found:
            raise ToolResolutionError(f"no remembered fact shares a word with {query[:100]!r}; try other words")
        return [f"{fact.id}: {fact.text}" for fact in found]

    @tool(effect="write", idempotent=True)
    async def forget_fact(number: int) -> str:
        """Forget a remembered fact that is wrong or no longer wanted.

        Args:
            number: The number of the fact, as find_facts gives it.
        """
        if not await facts.forget(number):
            raise ToolResolutionError(f"there is no fact {number}; find_facts gives the numbers")
        return f"Fact {number} is forgotten."

    return remember_fact, find_facts, forget_fact
