"""Facts: what an agent remembers beyond a session, in one space of a store."""

from forge.agent.memory.names import checked_name
from forge.agent.memory.protocol import FactStore
from forge.errors import DefinitionError
from forge.runtime.options import checked_options
from stages.memory import Fact
from stages.options import Count
from stages.repair.decoding import sound

LONGEST_FACT = 2000
"""Maximum characters of a fact: it is a sentence or a few, and takes room in every prompt that it is recalled for."""

_LONGEST_QUERY = 10_000
"""Characters of a query that are looked at."""


class Facts:
    """The facts of one space, such as a user's or a project's; those of other spaces are never seen.

    `stages.memory.with_facts` puts them before a request, marked as data. An agent is shown those that share words with
    a message, and also the `newest` ones, whatever the message says.
    """

    @checked_options
    def __init__(self, store: FactStore, space: str = "default", *, newest: Count = 0) -> None:
        self._store = store
        self._newest = newest
        self.space = checked_name(space, "a space of facts")

    def __repr__(self) -> str:
        return f"Facts({self._store!r}, {self.space!r})"

    @checked_options
    async def remember(self, text: str) -> Fact:
        """Keep the fact. DefinitionError for an empty one, or one of more than 2,000 characters."""
        kept = sound(text).replace("\0", "").strip()  # which not every store takes
        if not kept:
            raise DefinitionError(("the fact is empty; say what is to be remembered",))
        if len(kept) > LONGEST_FACT:
            problem = f"the fact has {len(kept)} characters; a fact has at most {LONGEST_FACT}: shorten or split it"
            raise DefinitionError((problem,))
        return await self._store.remember(self.space, kept)

    @checked_options
    async def recall(self, query: str = "", limit: Count = 8) -> tuple[Fact, ...]:
        """The facts that share words with the query, the most relevant first; without a query, the newest."""
        return await self._store.recall(self.space, sound(query[:_LONGEST_QUERY]), limit=limit)

    async def recall_for(self, message: str) -> tuple[Fact, ...]:
        """What an agent is shown for the message: the facts that share words with it, then the newest."""
        newest = await self.recall(limit=self._newest) if self._newest else ()
        return tuple(dict.fromkeys((*await self.recall(message), *newest)))

    @checked_options
    async def forget(self, fact: Fact | int) -> bool:
        """Delete the fact; False: there was none with this id. Sessions that were shown it keep what was said."""
        return await self._store.forget(self.space, fact if isinstance(fact, int) else fact.id)
