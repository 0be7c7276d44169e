"""The pages on the proxy and its policies: their examples run."""

from collections.abc import Sequence

from msgspec import Raw

from forge.proxy.policy import applied
from forge.proxy.policy_file import policy_from_toml
from stages.message import ToolCall
from stages.objection import Guard, Objection, Stop, unmarked
from stages.rules import Rules
from stages.state import State
from stages.tool import ToolSpec
from tests.docs.pages import blocks, page, pasted

POLICIES = page("policies")


def test_the_example_for_developers_runs() -> None:
    names = pasted("proxy")
    assert b'"finish_reason":"tool_calls"' in names["answer_body"]
    assert names["stream"].endswith(b"data: [DONE]\n\n")


def test_the_policies_of_the_page_are_valid_and_do_what_it_says() -> None:
    rules, shaping = (policy_from_toml(block) for block in blocks(POLICIES, "toml"))
    assert rules.general.tools["edit_file"].grounded == ("path",)
    assert (rules.of("Qwen3-4B").limits.max_repeats, rules.of("Qwen3-4B").terminal_tool) == (1, "commit")
    assert shaping.of("qwen").overflow == "compact"
    names = ("read_file", "run_tests", "edit_file", "commit", "web_search")
    tools = tuple(ToolSpec(name=name, description="", parameters=SCHEMA) for name in names)
    under = applied(rules.general, Rules(tools=tools, on_text="accept"))
    call = ToolCall(id="1", name="commit", arguments="{}")
    told = [unmarked(wrong) for guard in under.guards for wrong in verdict_of(guard, call)]
    assert all(f"[StepEnforcementError] {text}`" in POLICIES for text in told)
    assert (len(told), under.absent) == (1, ())


SCHEMA = Raw(b'{"type":"object","properties":{"path":{"type":"string"}}}')


def verdict_of(guard: Guard, call: ToolCall) -> Sequence[Objection]:
    verdict = guard(State(history=()), (call,))
    assert not isinstance(verdict, Stop)
    return verdict
