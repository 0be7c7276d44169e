"""Kept: values under a name of their own, saved with the run, and refused in words where they are something else."""

import pytest
from msgspec import Raw, Struct
from msgspec.structs import replace

from stages.kept import Kept, KeptError
from stages.message import User
from stages.saved import load, save
from stages.state import State

COUNT, OTHER = Kept("count", int, 0), Kept("other", dict[str, float], {})
START = State(history=(User(text="Go."),))


class Deep(Struct, frozen=True):
    known: dict[str, tuple[int, ...]] = {}


def test_each_name_has_a_value_of_its_own_and_the_start_is_kept_by_nothing() -> None:
    assert (COUNT.get(START), OTHER.get(START)) == (0, {})
    state = OTHER.put(COUNT.put(START, 3), {"a": 0.5})
    assert (COUNT.get(state), OTHER.get(state)) == (3, {"a": 0.5})
    assert COUNT.get(COUNT.put(state, 4)) == 4
    assert OTHER.put(COUNT.put(state, 0), {}) == START
    assert COUNT.put(START, 0) is START


def test_what_is_kept_is_saved_and_outlives_what_compaction_cuts() -> None:
    deep = Kept("deep", Deep, Deep())
    state = deep.put(START, Deep(known={"a": (1, 2)}))
    assert deep.get(load(save(state)).reshape(())) == Deep(known={"a": (1, 2)})


@pytest.mark.parametrize("found", [b'"many"', b"1e999999", b"[" * 9000])
def test_what_its_stages_have_not_kept_is_refused_in_words(found: bytes) -> None:
    state = replace(START, kept=(("count", Raw(found)),))
    with pytest.raises(KeptError, match="what the state keeps as 'count' cannot be read: "):
        COUNT.get(state)


def test_a_value_that_is_changed_after_it_was_got_changes_nothing_else() -> None:
    counts = OTHER.get(START)
    counts["a"] = 0.5
    assert OTHER.get(START) == {}
    assert OTHER.get(OTHER.put(START, counts)) == {"a": 0.5}


def test_a_value_of_another_type_is_refused_where_it_is_put() -> None:
    for wrong in ("x", object()):
        with pytest.raises(KeptError, match="cannot be kept as 'count'"):
            COUNT.put(START, wrong)  # type: ignore[arg-type]  # the mistake
    with pytest.raises(KeptError, match="cannot be kept as 'o'"):
        Kept("o", object, object())
