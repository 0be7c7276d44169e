"""Memory: what a session keeps of what was said, and the facts that outlive it."""

from stages.memory.facts import Fact, facts_message, with_facts
from stages.memory.pruning import pruned
from stages.memory.ranking import query_words, ranked, words_of
from stages.memory.selection import Role, branched, in_turn, last_messages, misplaced, of_roles, title

__all__ = [
    "Fact",
    "Role",
    "branched",
    "facts_message",
    "in_turn",
    "last_messages",
    "misplaced",
    "of_roles",
    "pruned",
    "query_words",
    "ranked",
    "title",
    "with_facts",
    "words_of",
]
