"""Commands: real processes, which end with everything they started, and whose output is bounded."""

import asyncio
import os
import select
import signal
import sys
import threading
from pathlib import Path

import pytest

from forge.agent.files.commands import KEPT, Ran, run_process
from forge.errors import ToolResolutionError


def both_told(pipe: Path) -> list[str]:
    """A command that writes its own id and its child's into the pipe, and waits for the child."""
    return ["sh", "-c", f"sleep 60 & echo $$ $! > {pipe}; wait"]


def python(code: str) -> list[str]:
    return [sys.executable, "-c", code]


def ran(folder: Path, *command: str, seconds: float = 60.0, **environment: str) -> Ran:
    return asyncio.run(run_process(command, folder, seconds, environment))


def wait_until_gone(pid: int) -> None:
    """Return when the process has ended; fail if it goes on."""
    try:
        process = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    with os.fdopen(process):
        assert select.select([process], [], [], 30)[0], f"{pid} goes on"


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("print('out')", Ran(code=0, output="out\n")),
        ("import sys; sys.exit('wrong')", Ran(code=1, output="wrong\n")),
        ("import os; print(os.getcwd())", Ran(code=0, output="{folder}\n")),
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", Ran(code=-9, output="")),
        ("print(input())", None),
        ("import sys; sys.stdout.buffer.write(b'\\xff\\n')", Ran(code=0, output="\ufffd\n")),
    ],
)
def test_a_command_runs_in_the_folder_and_reads_nothing(tmp_path: Path, code: str, expected: Ran | None) -> None:
    found = ran(tmp_path, *python(code))
    if expected is None:
        assert found.code == 1
        assert "EOFError" in found.output
    else:
        assert found == Ran(code=expected.code, output=expected.output.format(folder=tmp_path.resolve()))


def test_no_shell_reads_its_words(tmp_path: Path) -> None:
    words = ["*", "$HOME", "; echo no", "a  b", "`x`", "|", ">file"]
    found = ran(tmp_path, *python("import sys; print(sys.argv[1:])"), *words)
    assert found.output == f"{words}\n"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("then", ["", "; wait"])
def test_what_a_command_started_ends_with_it(tmp_path: Path, then: str) -> None:
    found = ran(tmp_path, "sh", "-c", f"sleep 60 & echo $!{then}", seconds=1.0 if then else 60.0)
    assert found.code == (None if then else 0)
    wait_until_gone(int(found.output))


def test_a_command_that_will_not_end_is_killed(tmp_path: Path) -> None:
    assert ran(tmp_path, "sh", "-c", "trap '' TERM; echo 1; sleep 60", seconds=1.0) == Ran(code=None, output="1\n")


def test_cancelling_ends_the_command_and_what_it_started(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)

    async def cancelled() -> str:
        running = asyncio.ensure_future(run_process(both_told(pipe), tmp_path, 60.0, {}))
        both = await asyncio.to_thread(pipe.read_text)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        return both

    for pid in asyncio.run(cancelled()).split():
        wait_until_gone(int(pid))


def test_cancelled_while_it_starts_it_leaves_nothing_either(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    children = Path(f"/proc/self/task/{threading.get_native_id()}/children")
    before = children.read_text()

    async def cancelled() -> str:
        running = asyncio.ensure_future(run_process(both_told(pipe), tmp_path, 60.0, {}))
        while children.read_text() == before:  # noqa: ASYNC110
            await asyncio.sleep(0)
        both = pipe.read_text()  # the loop stands still meanwhile: the start goes no further
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        return both

    open_before = len([*Path("/proc/self/fd").iterdir()])
    for pid in asyncio.run(cancelled()).split():
        wait_until_gone(int(pid))
    assert len([*Path("/proc/self/fd").iterdir()]) == open_before


def test_a_process_that_left_the_group_does_not_hold_the_command_up(tmp_path: Path) -> None:
    code = "import subprocess; print(subprocess.Popen(['sleep', '60'], start_new_session=True).pid)"
    found = ran(tmp_path, *python(code))
    assert found.code == 0
    os.kill(int(found.output), signal.SIGKILL)


def test_an_endless_output_is_kept_bounded_with_its_beginning_and_its_end(tmp_path: Path) -> None:
    code = f"import sys; print('first'); sys.stdout.write('x' * {3 * KEPT}); print('last')"
    output = ran(tmp_path, *python(code)).output
    assert output.startswith("first\nxxx")
    assert output.endswith("xxxlast\n")
    assert "bytes are missing here]" in output
    assert len(output) <= 1.6 * KEPT


def test_secrets_of_the_environment_are_not_passed_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    monkeypatch.setenv("LANG", "C.UTF-8")
    found = ran(tmp_path, *python("import os; print(dict(os.environ))"), OWN="given")
    assert "sk-secret" not in found.output
    assert "'LANG': 'C.UTF-8'" in found.output
    assert "'OWN': 'given'" in found.output


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (["pytest -q"], r"give each word by itself: \['pytest', '-q'\]"),
        (["there-is-no-such-program"], "there is no program 'there-is-no-such-program' here; there is no shell"),
        (["a\0b"], "cannot be started"),
        (["/"], "cannot be started"),
        (["python3", "x" * 3_000_000], "cannot be started"),
    ],
)
def test_what_cannot_be_started_is_told(tmp_path: Path, command: list[str], said: str) -> None:
    open_before = len([*Path("/proc/self/fd").iterdir()])
    with pytest.raises(ToolResolutionError, match=said):
        asyncio.run(run_process(command, tmp_path, 60.0, {}))
    assert len([*Path("/proc/self/fd").iterdir()]) == open_before
