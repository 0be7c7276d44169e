"""Memory: facts that outlive a session, and a session's history selected, pruned and branched."""

import re
from collections.abc import Collection, Iterable
from math import log
from typing import Literal, assert_never
from unicodedata import combining, normalize

from msgspec import Struct
from msgspec.structs import replace

from stages.compaction.conversation import pruned_conversation
from stages.compaction.history import exchange_around
from stages.context_budget import ContextBudget
from stages.deliver import interrupt
from stages.halt import CannotFit
from stages.message import Assistant, History, Kind, Message, System, Tool, ToolCall, User, is_user_input, turn_of
from stages.nudges import as_data, quote, remembered
from stages.state import Done, Ready, State
from stages.tokens import Report

# Facts are remembered beyond a session. A model is shown them as data, never as instructions.


class Fact(Struct, frozen=True, kw_only=True):
    """A remembered fact. `id` is unique in its store; `at` is when it was stored, in Unix seconds."""

    id: int
    text: str
    at: float = 0.0


def facts_message(facts: Iterable[Fact], history: History) -> User | None:
    """The message with the facts that the history does not show yet; None if there are none.

    It belongs right before the user's next message, so that earlier messages stay the same and a server's prefix cache
    stays valid. Each fact is a JSON string on its own line, with `<` and `>` escaped, so that no fact can close the
    tags around them or add a line.
    """
    shown = {line for m in history if isinstance(m, User) and m.kind is Kind.REMEMBERED for line in m.text.split("\n")}
    lines = list(dict.fromkeys(f"- {as_data(fact.text)}" for fact in facts))
    new = [line for line in lines if line not in shown]
    return User(text=remembered(new), kind=Kind.REMEMBERED) if new else None


def with_facts(state: State, facts: Iterable[Fact]) -> State:
    """The state with the facts message before its last message, if that is the user's request, else at the end."""
    history = state.history
    last = history[-1] if history else None
    at = len(history) - (last is not None and is_user_input(last))
    message = facts_message(facts, history[:at])
    if message is None:
        return state
    return state.reshape((*history[:at], replace(message, turn=turn_of(last) if last else 0), *history[at:]))


# Pruning: a conversation shortened to a number of tokens.


def pruned(state: State, max_tokens: int) -> State | CannotFit:
    """The state with a history of at most `max_tokens`; CannotFit if what must stay takes more.

    Old results are cut first, then the oldest exchanges are dropped, calls together with their results. The system
    prompt, the user's last request and pinned messages stay. Tokens are estimated at the last measured rate.
    """
    budget = ContextBudget(tokens=max_tokens, threshold=1, low=1).metered(state.ledger.tokens_per_character, Report())
    if budget.tokens_of(budget.count(state.history)) <= max_tokens:
        return state
    shorter = pruned_conversation(state.history, budget)
    return shorter if isinstance(shorter, CannotFit) else state.reshape(shorter.history)


# Ranking: the facts that share words with a query, in the same order in every store.

QUERY_WORDS = 64
"""Maximum number of different words of a query that are searched for."""

_ALONE = r"\u0e00-\u0eff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"
"""Letters of Thai, Lao, kana and Chinese, which are written without spaces: each counts as a word."""

_WORD = re.compile(rf"[{_ALONE}]|[^\W_{_ALONE}]+")


_STEM = 5
"""Letters of a word that are compared: in most languages a usable stem, without rules for any."""


def words_of(text: str) -> list[str]:
    """The words of a text, in order, without case, accents and endings: `Drinks` and `drinking` become the same."""
    plain = "".join(one for one in normalize("NFKD", text.casefold()) if not combining(one))
    return [_stem(word) for word in _WORD.findall(plain)]


def _stem(word: str) -> str:
    if not word.isalpha():
        return word  # a number with further digits is another number
    stem = word[:_STEM]
    return stem.removesuffix("s") if len(stem) > 3 else stem


def query_words(query: str) -> list[str]:
    """The words of a query that a store searches for; empty if it has none."""
    return list(dict.fromkeys(words_of(query)))[:QUERY_WORDS]


def ranked(found: Iterable[Fact], query: str, total: int, limit: int) -> tuple[Fact, ...]:
    """Up to `limit` of the facts that share a word with the query, the most relevant first.

    A shared word counts more the fewer of the `total` facts have it (inverse document frequency); equal facts are
    ordered newest first. `found` must include all facts that share a word. A query without words finds the newest.
    """
    wanted = query_words(query)
    facts = sorted(found, key=lambda fact: fact.id, reverse=True)
    if not wanted:
        return tuple(facts[:limit])
    having = {fact.id: {*wanted} & {*words_of(fact.text)} for fact in facts}
    weight = {word: log(1 + total / max(1, sum(word in has for has in having.values()))) for word in wanted}
    score = {fact: sum(weight[word] for word in wanted if word in has) for fact, has in having.items()}
    return tuple(sorted((f for f in facts if having[f.id]), key=lambda f: -score[f.id])[:limit])


# Selection: parts of a history, without separating a call from its result.

Role = Literal["system", "user", "assistant", "tool"]
"""The author of a message, in the chat protocol's terms."""

_TITLE = 80
"""Maximum characters of a session's title."""


def role_of(message: Message) -> Role:
    """The message's role."""
    match message:
        case System():
            return "system"
        case User():
            return "user"
        case Assistant():
            return "assistant"
        case Tool():
            return "tool"
        case _:
            assert_never(message)


def of_roles(history: History, roles: Collection[Role]) -> History:
    """The messages of these roles. Without `assistant`, results are there without their calls."""
    return tuple(message for message in history if role_of(message) in roles)


def last_messages(history: History, count: int) -> History:
    """The last `count` messages, preceded by the calls that they answer."""
    if count <= 0 or not history:
        return ()
    start = max(0, len(history) - count)
    return history[exchange_around(history, start)[0] :]


def whole_prefix(history: History, count: int) -> History:
    """The first `count` messages, without an exchange that would be incomplete."""
    if count >= len(history):
        return history
    start, _ = exchange_around(history, max(0, count))
    return history[:start]


def branched(state: State, count: int | None = None) -> State:
    """The state for a new session that continues after the first `count` messages, or after all of them.

    If a run is in progress, its calls are answered as interrupted.
    """
    stopped = state if isinstance(state.phase, Done) else interrupt(state)
    if count is None or count >= len(stopped.history):
        return stopped
    return stopped.reshape(whole_prefix(stopped.history, count)).to(Ready())


def misplaced(history: History, message: Message) -> str:
    """Why the message cannot come next, as a sentence; empty if it can. Open calls must be answered first."""
    calls = {call.id: call.name for call in _open_calls(history)}
    if isinstance(message, Tool):
        if message.call_id in calls:
            return ""
        waiting = ", ".join(calls) or "none"
        return f"the result answers the call {message.call_id!r}, which is not waiting for one; waiting are: {waiting}"
    if not calls:
        return ""
    waiting = ", ".join(f"{name} ({call_id})" for call_id, name in calls.items())
    return f"add the results of these calls first, as Tool messages: {waiting}"


def in_turn(history: History, message: Message) -> Message:
    """The message with its turn after this history: a reply begins a turn, other messages belong to the last one.

    A message that has a turn already keeps it.
    """
    if isinstance(message, System) or message.turn:
        return message
    last = max(map(turn_of, history), default=0)
    return replace(message, turn=last + isinstance(message, Assistant))


def _open_calls(history: History) -> tuple[ToolCall, ...]:
    """The calls at the end of the history that have no result yet."""
    if not history:
        return ()
    start, _ = exchange_around(history, len(history) - 1)
    said, *answers = history[start:]
    answered = {answer.call_id for answer in answers if isinstance(answer, Tool)}
    calls = said.calls if isinstance(said, Assistant) else ()
    return tuple(call for call in calls if call.id not in answered)


def title(history: History) -> str:
    """The beginning of the first request of the user, in one printable line; empty if there is none."""
    asked = (m.text for m in history if is_user_input(m))
    line = " ".join(next(asked, "").split())
    return quote("".join(filter(str.isprintable, line)), _TITLE)
