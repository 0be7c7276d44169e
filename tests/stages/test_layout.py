"""Each module of `stages/` has its tests where a reader looks: in `test_<module>.py` or a folder of its name."""

from pathlib import Path

HERE = Path(__file__).parent
STAGES = HERE.parents[1] / "stages"

BY_CORPUS = ("rescue/", "repair/")
"""Rooms whose corpus says which reply is read as which calls, whatever module reads it."""

SHARED = {
    "_later": "../test_import.py",
    "compaction/history": "../property/test_compaction_laws.py",
    "context_budget": "compaction/compactors/test_compaction.py",
    "halt": "../property/test_nouns.py",
    "reading/shown": "reading/test_provenance.py",
    "reading/toolset": "reading/test_replies.py",
    "schema/canonical_json": "../property/test_canonical_laws.py",
    "schema/coercion": "schema/check/test_check.py",
    "tool": "../scripts/test_recovery.py",
    "validate": "../scripts/test_loop.py",
    "wire/anthropic/messages": "wire/test_wires.py",
    "wire/anthropic/messages_server": "wire/test_server_wires.py",
    "wire/ollama/chat": "wire/test_wires.py",
    "wire/openai/chat_server": "wire/test_server_wires.py",
    "wire/openai/responses_server": "wire/test_server_wires.py",
    "wire/sampling": "../backends/test_sampling.py",
    "wire/server/decoding": "wire/test_server_wires.py",
    "wire/server/errors": "wire/test_server_wires.py",
    "wire/target": "test_serialize.py",
}
"""Modules whose tests are those of another, and the file that has them."""


def modules() -> set[str]:
    found = (path.relative_to(STAGES).with_suffix("") for path in STAGES.rglob("*.py") if path.name != "__init__.py")
    return {path.as_posix() for path in found if not path.as_posix().startswith(BY_CORPUS)}


def has_its_own(module: str) -> bool:
    place = HERE / module
    return any(place.glob("test_*.py")) or place.with_name(f"test_{place.name}.py").exists()


def test_every_module_has_its_tests_in_one_place_or_shares_those_of_another() -> None:
    assert {module for module in modules() if not has_its_own(module)} == SHARED.keys()
    assert [file for file in SHARED.values() if not (HERE / file).exists()] == []
