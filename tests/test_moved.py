"""Old paths that the docs named lead to the modules' new places, and say so."""

import subprocess
import sys
from importlib import import_module

import pytest

import forge
from forge._moved import MOVED, RENAMED
from stages import reasoning, rescue

# What the docs imported from each of them, before the modules moved to their rooms.
NAMES = {
    "forge.ablation": ("ablate",),
    "forge.backends.hardware": ("detect_hardware", "HardwareProfile", "parse_nvidia", "profile"),
    "forge.bisect": ("bisect",),
    "forge.slot_worker": ("SlotWorker", "WorkerStopped"),
    "forge.stage_list": ("STAGES",),
    "forge.turn": ("stages_of",),
    "stages.delta": ("CallDelta", "CallStarted", "Delta", "Ended", "ReasoningDelta", "Reclassified", "TextDelta"),
    "stages.evidence": ("evidence",),
    "stages.order": ("Use",),
    "stages.rescue.jsontext": ("Json", "json_at"),
    "stages.retry": ("Backoff", "Tries"),
    "stages.rules": ("Ladder", "Rules", "completed", "pending"),
}


@pytest.mark.parametrize("old", MOVED)
def test_an_old_path_has_the_same_names_and_tells_the_new_one(old: str) -> None:
    sys.modules.pop(old, None)
    with pytest.warns(DeprecationWarning, match=f"{old} is now {MOVED[old]}"):
        module = import_module(old)
    renamed = RENAMED.get(old, {})
    for name in NAMES[old]:
        assert getattr(module, name) is getattr(import_module(MOVED[old]), renamed.get(name, name))


def test_what_splits_reasoning_moved_to_its_room() -> None:
    for old, new in (("advance", "advance_split"), ("finish", "finish_split"), ("gather", "join_split")):
        with pytest.warns(DeprecationWarning, match=f"stages.rescue.{old} is now stages.reasoning.{new}"):
            assert getattr(rescue, old) is getattr(reasoning, new)


def test_the_warning_points_at_the_import() -> None:
    code = "import forge\nfrom forge.bisect import bisect"
    said = subprocess.run([sys.executable, "-W", "always", "-c", code], check=True, capture_output=True, text=True)
    assert "<string>:2: DeprecationWarning: forge.bisect is now forge.journal.bisection" in said.stderr


def test_no_name_of_forge_is_lost() -> None:
    names = (
        "Conversation Finished ForgeError Halted IdempotencyKey NoCompact Redact SlidingWindowCompact Summarize "
        "TieredCompact Tool ToolDef ToolFailed ToolResolutionError Workflow drive follow replay respond_tool resume "
        "resume_journal run run_or_raise run_sync states stream tool"
    )
    assert [name for name in names.split() if not callable(getattr(forge, name, None))] == []
