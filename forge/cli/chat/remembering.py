"""The commands of a chat about facts: remember one, list them, forget one."""

from collections.abc import Iterator

from forge.agent.memory import Fact, Facts, SQLiteStore
from forge.cli.chat.slash import SlashCommand
from forge.cli.layout import LabelledText
from forge.cli.plain import printable
from forge.errors import ForgeError, quantity

_NEWEST = 8
"""Facts of which the agent knows whatever is said; of older ones, those that share words with a message."""

_LISTED = 50
"""Maximum number of facts in a list."""


def folder_facts(store: SQLiteStore) -> Facts:
    """The facts of all conversations of the store's folder."""
    return Facts(store, "chat", newest=_NEWEST)


async def about_facts(facts: Facts, command: SlashCommand) -> tuple[LabelledText, ...]:
    """Do what `/remember`, `/facts` or `/forget` say; the rows that tell of it. ForgeError if it cannot be done."""
    match command:
        case SlashCommand(name="remember", argument=text):
            kept = await facts.remember(text)
            return (LabelledText("noted", f"as fact {kept.id}; the agent knows it from your next message on"),)
        case SlashCommand(name="forget", argument=number):
            if not number.isdecimal() or not await facts.forget(int(number)):
                raise ForgeError(f"there is no fact {number!r}; /facts lists them with their numbers")
            return (LabelledText("forgotten", f"fact {number}; what was said with it stays in the conversation"),)
        case _:
            return tuple(_fact_rows(await facts.recall(limit=_LISTED + 1)))


def _fact_rows(found: tuple[Fact, ...]) -> Iterator[LabelledText]:
    if not found:
        yield LabelledText("facts", "none yet; /remember keeps one for all conversations of this folder")
    for one in sorted(found[:_LISTED], key=lambda fact: fact.id):
        yield LabelledText(f"{one.id}", printable(one.text))
    if len(found) > _LISTED:
        yield LabelledText("", f"and older ones; the newest {quantity(_LISTED, 'fact')} are listed")
