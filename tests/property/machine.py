"""A machine of the seven stages, and every state that it can reach."""

from hypothesis import strategies as st
from msgspec import Raw
from returns.result import Success

from forge import testing
from stages import compact, enforce, execute, fold, pipeline, send, serialize, validate
from stages.compaction import ContextBudget, TieredCompact
from stages.deliver import deliver
from stages.effect import Approved, Ask, Execute, Outcome, RawCall, Rejected, Replied, Reply, Results, Send, Settled
from stages.guards import prerequisites, required_steps
from stages.pipeline import Stage
from stages.rules import Rules
from stages.state import Awaiting, Ready, State
from stages.tool import Prerequisite, ToolSpec
from stages.wire.target import Mode, Target

WHAT = Raw(
    b'{"type":"object","properties":{"what":{"type":"string"}},"required":["what"],"additionalProperties":false}'
)
TEXT = Raw(b'{"type":"object","properties":{"text":{"type":"string"}},"required":["text"]}')
NONE = Raw(b'{"type":"object","properties":{}}')

RULES = Rules(
    tools=(
        ToolSpec(name="look", description="Look.", parameters=WHAT, effect="read"),
        ToolSpec(
            name="write",
            description="Write.",
            parameters=TEXT,
            prerequisites=(Prerequisite(tool="look"),),
            approval=True,
        ),
        ToolSpec(name="finish", description="Finish.", parameters=NONE, effect="terminal"),
    ),
    required=("look",),
)


def stages_in_order(mode: Mode = "native", rules: Rules = RULES) -> tuple[Stage, ...]:
    return (
        compact(TieredCompact(), ContextBudget(tokens=2000)),
        fold(),
        serialize(rules, Target(mode=mode, model="model")),
        send(rules),
        validate(rules, Target(mode=mode)),
        enforce(required_steps(rules), prerequisites(rules)),
        execute(rules),
    )


TURN = pipeline(*stages_in_order())


states = testing.states(phases=[Ready])
good_calls = st.sampled_from(
    [
        RawCall(name="look", arguments='{"what": "a"}'),
        RawCall(name="look", arguments='{"what": "b"}'),
        RawCall(name="write", arguments='{"text": "t"}'),
        RawCall(name="finish", arguments="{}"),
    ]
)
replies = testing.replies() | st.lists(good_calls, min_size=1, max_size=2).map(
    lambda made: Reply(calls=tuple(made), finish="tool_calls")
)
"""What a model says to the machine: half of it calls that fit its tools, or the runs would not get far."""


@st.composite
def outcomes(draw: st.DrawFn, awaiting: Awaiting) -> Outcome:
    """An outcome that the effect may have, anything that a model may say included."""
    match awaiting.effect:
        case Send():
            return Replied(reply=draw(replies), seconds=draw(st.floats(0, 5)))
        case Execute(calls=calls):
            return Results(results=tuple(draw(testing.results(call)) for call in calls))
        case Ask(digest=digest, in_doubt=unsure):
            edited = draw(st.sampled_from([None, '{"text": "edited"}', '{"text": 1}', "no"]))
            decisions: list[Outcome] = [Approved(digest=digest, edited=edited), Rejected(digest=digest, reason="no")]
            if unsure:
                decisions += [Settled(digest=digest, happened=True, result="5"), Settled(digest=digest, happened=False)]
            return draw(st.sampled_from(decisions))


@st.composite
def reachable(draw: st.DrawFn) -> State:
    """A state that a run can be in: some steps of the machine from a random beginning, in any phase between stages."""
    state = draw(states)
    stages = stages_in_order()
    for _ in range(draw(st.integers(0, 12))):
        for stage in stages[: draw(st.sampled_from([1, 2, 3, 4, 5, 6, 7, 7, 7, 7]))]:
            moved = stage(state)
            if not isinstance(moved, Success):
                return state
            state = moved.unwrap()
        if isinstance(state.phase, Awaiting):
            moved = deliver(state, draw(outcomes(state.phase)))
            state = moved.unwrap()
    return state
