"""A supervisor process between forge and a server, so that no server outlives its forge.

Run as a script: supervisor.py GRACE COMMAND…. A byte on standard input (stop), or its end (forge has died), makes it
ask the server to exit, wait GRACE seconds, and kill it with everything that it started.
"""

# Standard library only, and nothing of forge (the code in forge/processes.py does the same): it runs as a script under
# `python -I`, which may not find forge, and importing forge would delay every start of a server.

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
import threading

_CANNOT_START = 126
_PR_SET_PDEATHSIG = 1


def main(grace: float, command: list[str]) -> int:
    """Run the command; returns its exit code, 128 and the signal's number if a signal ended it."""
    libc = ctypes.CDLL(None) if sys.platform == "linux" else None

    def bound() -> None:
        # Linux only: if the supervisor is killed, the server is too. Its workers must notice by themselves.
        if libc is not None:
            libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)

    own_group = os.name == "posix"
    try:
        server = subprocess.Popen(  # noqa: S603
            command,
            stdin=subprocess.DEVNULL,
            start_new_session=own_group,
            preexec_fn=bound if own_group else None,  # noqa: PLW1509 - no thread is running yet
        )
    except OSError as error:
        sys.stderr.write(f"cannot start {command[0]}: {error.strerror}\n")
        return _CANNOT_START

    def end_when_told() -> None:
        os.read(sys.stdin.fileno(), 1)
        server.terminate()
        try:
            server.wait(grace)
        except subprocess.TimeoutExpired:
            server.kill()

    threading.Thread(target=end_when_told, daemon=True).start()
    code = server.wait()
    if own_group:
        # Remaining workers of the server have nobody to serve.
        with contextlib.suppress(ProcessLookupError, PermissionError):  # nobody is left; macOS reports the latter
            os.killpg(server.pid, signal.SIGKILL)
    return 128 - code if code < 0 else code


if __name__ == "__main__":
    sys.exit(main(float(sys.argv[1]), sys.argv[2:]))
