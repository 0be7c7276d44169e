"""Recounting: the ledger of a session, computed from its history alone, so nothing is stored between requests."""

from collections import deque
from collections.abc import Callable, Iterator

from msgspec.structs import replace

from stages.budget import left_of
from stages.effect import Budget, Spending
from stages.message import FAILURES, Assistant, History, Kind, Status, Tool, ToolCall, User, outcome_of, turn_of
from stages.order import judged_by
from stages.progress import answered_again, attempt_of, digests, success_of
from stages.rules import Rules, repeat_policy
from stages.state import Attempt, Ledger, Success
from stages.wire.valid import with_object_arguments

# A client sends the whole conversation with each request: which calls were made, with which arguments and results. That
# is what rules are about:
#
# - `successes`, `seen`, `progress` and `turn` are what forge's own run with this history would have, and so are the
#   `attempts` whose calls ran and the remaining tool calls of the budget.
# - What a history does not contain has its initial value: consecutive mistakes (corrections are hidden from clients),
#   refused calls, tokens and costs, calls with an unknown outcome, what a person rejected, what compaction cut.
# - In a run, a user message during calls is progress. Here it is not, because clients put their own reminders there.

IsError = Callable[[str, str], bool]
"""A pure function of a tool's name and the text of its result: whether that is an error."""

_Answered = list[tuple[ToolCall, Tool]]


def recount(
    rules: Rules, history: History, *, budget: Budget | None = None, is_error: IsError = lambda *_: False
) -> Ledger:
    """The ledger after this history, with what is left of the budget. Takes time linear in the history.

    A call without an answer does not count as made. An answer is an error if the history says so, if it begins with one
    of forge's marks (`[ToolError]`), or if `is_error` says so. A new question from the user after an answer in text is
    progress: it may ask for the same things again.
    """
    repeating = repeat_policy(rules)
    done: list[Success] = []
    vain: list[Attempt] = []
    seen: set[bytes] = set()
    asked, ran = last_question(history), 0
    progress = turn_of(history[asked]) if asked else 0
    for turn, answered in _batches(history):
        # The arguments that a client sends may be damaged.
        outcomes = [
            (with_object_arguments(call) or replace(call, arguments="{}"), answer.text, _status(call, answer, is_error))
            for call, answer in answered
        ]
        new = [
            success_of(c, text, turn, judged_by(rules.order, c, text)) for c, text, s in outcomes if s == "succeeded"
        ]
        again = answered_again(new, repeating, seen)
        vain += (*again, *(attempt_of(*outcome, turn) for outcome in outcomes if outcome[2] in FAILURES))
        done += new
        seen.update(digest for one in new for digest in (one.call, one.answer))
        progress = max(progress, turn if len(again) < len(new) else 0)
        # By the status, not by the text: a tool could begin its result with forge's mark for a call that was not run.
        ran += sum(answer.kind is Kind.TOOL_RESULT and answer.status != "not_run" for _, answer in answered)
    return Ledger(
        budget=left_of(budget or Budget(), Spending(tool_calls=ran)),
        turn=max(map(turn_of, history), default=0),
        successes=tuple(done),
        attempts=tuple(vain),
        seen=digests(done),
        progress=progress,
    )


def _batches(history: History) -> Iterator[tuple[int, _Answered]]:
    """The answered calls of each reply with their answers, and the reply's turn.

    If an id occurs twice, the first answer belongs to the first call.
    """
    turn, answered = 0, _Answered()
    waiting: dict[str, deque[ToolCall]] = {}
    for message in history:
        match message:
            case Assistant(calls=calls) if calls:
                if answered:
                    yield turn, answered
                turn, answered, waiting = message.turn, [], {}
                for call in calls:
                    waiting.setdefault(call.id, deque()).append(call)
            case Tool(call_id=call_id) if of_this_id := waiting.get(call_id):
                answered.append((of_this_id.popleft(), message))
            case _:
                pass
    if answered:
        yield turn, answered


def last_question(history: History) -> int:
    """The position of the last user message that follows an answer in text; 0 if there is none."""
    place, answered = 0, False
    for number, message in enumerate(history):
        match message:
            case Assistant(calls=calls):
                answered = not calls
            case User(kind=Kind.USER_INPUT) if answered:
                place, answered = number, False
            case _:
                pass
    return place


def _status(call: ToolCall, answer: Tool, is_error: IsError) -> Status:
    status = outcome_of(answer)
    return "failed" if status == "succeeded" and is_error(call.name, answer.text) else status
