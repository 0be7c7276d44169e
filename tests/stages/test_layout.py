"""Each module of `stages/` has its tests where a reader looks for them; the table says which rooms share a file."""

from pathlib import Path

HERE = Path(__file__).parent
STAGES = HERE.parents[1] / "stages"

ROOMS = {
    # What compactors cut and when is seen in whole compactions.
    "compaction/test_compaction.py": "budget cut keep measured_history sliding survey tiered",
    # A guard is judged with the values and calculations that it is about.
    "confidence/test_settling.py": "asking_again decision question unsure",
    "guards/test_calculations.py": "../grounding/calculated_arguments ../grounding/miscalculations",
    "guards/test_grounded_values.py": "../grounding/sources",
    "guards/test_guards.py": "prerequisite_calls steps",
    "policy/test_order.py": "../guards/call_order",
    "policy/test_batch_selection.py": "../guards/placeholders",
    "policy/test_escalation.py": "levels ../guards/repeated_calls",
    # One text a function; what matters is what all of them have in common.
    "nudges/test_nudges.py": """beside context forbidden guidance outcomes quoting refused_calls replies
        thinking unfit values""",
    "options/test_option_checks.py": "types",
    "reading/test_replies.py": "toolset",
    "reading/test_provenance.py": "shown",
    "reading/test_echoes.py": "../guards/own_words",
    "reasoning/test_reasoning.py": "cutting splitting tags",
    "repair/test_damaged_json.py": "json_text literals loose_json strings",
    # The corpus says which reply is read as which calls, family by family, and what around a call it depends on.
    "rescue/test_rescue.py": """blanks call_search candidates described driver found known patterns pycalls shape
        strays families/elements families/functionary families/gemma families/harmony families/json_calls
        families/minimax families/named_tags families/not_calls families/pythonic families/react families/tagged
        families/tokens families/xml_calls""",
    "rescue/test_cues.py": "context foreign_cues foreign_retractions surroundings",
    "rescue/test_cost.py": "markers",
    # Parts of one check, one coercion, one projection.
    "schema/test_check.py": "coercion compilation locate problems retyping",
    "schema/test_judging.py": "place searches",
    "schema/test_projection.py": "bounds containers pattern strict_mode",
    "schema/test_visits.py": "subschemas",
    # A protocol is tried by its requests and its answers, byte for byte, the stream with the whole reply.
    "wire/anthropic/test_messages.py": "messages_stream",
    "wire/anthropic/test_messages_server.py": """errors messages_answer messages_events messages_history messages_reply
        messages_request messages_tools thinking ../blocks""",
    "wire/ollama/test_chat.py": "chat_stream",
    "wire/openai/test_chat.py": "chat_answer chat_stream",
    "wire/openai/test_chat_server.py": """chat_events chat_history chat_reply chat_request chat_tools errors ../answers
        ../request_body ../served ../server_wires""",
    "wire/openai/test_responses_server.py": """responses_events responses_history responses_reply responses_request
        responses_tools""",
    "wire/prompted/test_forms.py": "json_calls xml_calls",
}
"""A test file, and the modules, beside the one of its own name, whose tests it has."""

ELSEWHERE = {
    "_later": "how names are loaded when they are first used: tests/test_import.py",
    "gathered": "data alone; laws in policy/test_named_tools.py and guards/test_grounded_values.py",
    "halt": "data alone; tests/property/test_nouns.py has its law, tests/test_outcome.py what people are told",
    "objection": "data alone; its texts are in nudges/, its counts in policy/test_mistakes.py",
    "wire/openai/strict": "tests/stages/policy/test_backend_escalation.py: strict where every tool can be",
    "wire/sampling": "tests/test_sampling.py, with the profiles that options come from",
    "wire/streaming": "tests/property/test_stream_laws.py and tests/test_streaming.py, over real connections",
    "wire/tool_schemas": "tests/stages/test_serialize.py: what is legal now is what a request allows",
    "wire/wires": "tests/test_wires.py, a run on every profile, and tests/property/test_wire_laws.py",
}
"""Modules without a test file of their own, and why."""


def modules() -> set[str]:
    found = (path.relative_to(STAGES).with_suffix("") for path in STAGES.rglob("*.py") if path.name != "__init__.py")
    return {path.as_posix() for path in found}


def shared() -> set[str]:
    return {
        (STAGES / Path(file).parent / name).resolve().relative_to(STAGES).as_posix()
        for file, names in ROOMS.items()
        for name in names.split()
    }


def own() -> set[str]:
    files = (path.relative_to(HERE) for path in HERE.rglob("test_*.py"))
    return {(file.parent / file.stem.removeprefix("test_")).as_posix() for file in files}


def test_every_module_has_its_tests_in_one_place_or_a_reason() -> None:
    assert modules() - own() - shared() - ELSEWHERE.keys() == set()


def test_the_tables_name_what_there_is_and_nothing_that_has_a_file_of_its_own() -> None:
    assert [file for file in ROOMS if not (HERE / file).exists()] == []
    assert (shared() | ELSEWHERE.keys()) - modules() == set()
    assert (shared() | ELSEWHERE.keys()) & own() == set()
    assert shared() & ELSEWHERE.keys() == set()
