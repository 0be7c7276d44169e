"""How Hypothesis makes the types that it does not know, and how it runs: no deadlines, nothing that needs luck."""

import asyncio
import inspect
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
import uvicorn.server
from hypothesis import Phase, settings
from hypothesis import strategies as st
from msgspec import Raw

from stages.effect import HandOff, NeedsInput, Said, Succeeded

REAL, SOAK = Path(__file__).parent / "real", Path(__file__).parent / "soak"
MODELS = frozenset({"smol", "qwen", "fitting", "models_here"})
"""The fixtures that load one."""

LEFT_OUT = "left out on this machine"
"""The property in which a test names what could not be tried, and why: see the summary."""

# A shell ignores Ctrl-C for what it starts in the background, and every process started from there inherits that: the
# tests of Ctrl-C would wait for ever.
signal.signal(signal.SIGINT, signal.default_int_handler)


class _Hurried:
    """asyncio for uvicorn, which looks ten times a second whether it should stop, and then waits a tenth more."""

    def __getattr__(self, name: str) -> object:
        return getattr(asyncio, name)

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds / 20)


vars(uvicorn.server)["asyncio"] = _Hurried()

st.register_type_strategy(Raw, st.sampled_from([Raw(b"null"), Raw(b"1"), Raw(b'{"a":[1,2]}'), Raw(b'"text"')]))
st.register_type_strategy(float, st.floats(allow_nan=False, allow_infinity=False))  # JSON has no others
st.register_type_strategy(NeedsInput, st.builds(NeedsInput, question=st.text().map("why? {}".format)))
# Hypothesis would take the factory of the default for the default itself.
_ENDS = st.one_of(st.none(), st.from_type(NeedsInput), st.from_type(HandOff), st.from_type(Said))
st.register_type_strategy(Succeeded, st.builds(Succeeded, value=st.from_type(Raw), ends=_ENDS))

# `make test` tries the same examples each time: whether main passes is no matter of luck. `make soak` tries new ones,
# many more; what it finds becomes a case with a name.
settings.register_profile("forge", deadline=None, derandomize=True, max_examples=20)
settings.register_profile("soak", deadline=None, max_examples=1_000)
settings.register_profile("unshrunk", max_examples=1_000, phases=[Phase.generate], database=None, derandomize=True)
settings.load_profile("forge")


@pytest.fixture
def unshrunk() -> Iterator[None]:
    """Find an example and leave it as it is: making it small is Hypothesis' work, and most of the time it takes."""
    settings.load_profile("unshrunk")
    yield
    settings.load_profile("forge")


def pytest_make_parametrize_id(val: object) -> str | None:
    """A short id for a long text: all of a hostile megabyte would be kept many times, and sent to each worker."""
    return f"{val[:40]!a} of {len(val)}" if isinstance(val, str | bytes) and len(val) > 200 else None


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run a test that is a coroutine; one that hangs fails after a minute."""
    if not inspect.iscoroutinefunction(pyfuncitem.function):
        return None
    arguments = {name: pyfuncitem.funcargs[name] for name in inspect.signature(pyfuncitem.function).parameters}

    async def bounded() -> None:
        async with asyncio.timeout(60):
            await pyfuncitem.function(**arguments)

    asyncio.run(bounded())
    return True


@pytest.hookimpl(tryfirst=True)  # xdist reads the groups in the same hook
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Where tests run side by side (`make test`), those on models in this process are one row, from the start on.

    A model is loaded once then, and never two asked at a time; of the others, each file is a row.
    """
    if unstable := [item.nodeid for item in items if " at 0x" in item.nodeid]:
        # xdist refuses to run at all where its workers found different tests, and prints every one of them.
        raise pytest.UsageError(f"the id of a test has an address, which differs between runs; name it: {unstable[0]}")
    for item in items:
        if SOAK in item.path.parents:
            item.add_marker(pytest.mark.soak)
        on_a_model = not MODELS.isdisjoint(getattr(item, "fixturenames", ()))
        item.add_marker(pytest.mark.xdist_group("models" if on_a_model else str(item.path)))
    items.sort(key=lambda item: REAL not in item.path.parents)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say what this machine could not try, and why; the tests say it in a property of theirs, wherever they ran."""
    reports = [report for kind in terminalreporter.stats.values() for report in kind]
    said = {text for report in reports for name, text in getattr(report, "user_properties", ()) if name == LEFT_OUT}
    for text in sorted(said):
        terminalreporter.write_line(f"{LEFT_OUT}: {text}")


@pytest.fixture(scope="session")
def _cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(autouse=True)
def _cache_of_the_tests(request: pytest.FixtureRequest, _cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is found out about the tests' servers is not kept for the user's; only real models are shared with them."""
    if REAL not in request.path.parents:
        monkeypatch.setenv("XDG_CACHE_HOME", str(_cache))
