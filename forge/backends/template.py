"""What a chat template reveals: the format of calls, and orders of roles that it refuses.

A separate process renders synthetic conversations with it (`forge.backends.rendering`); the results are analysed here.
"""

import functools
import json
import logging
import subprocess
import sys
import threading
from collections.abc import Mapping
from contextlib import suppress
from hashlib import blake2b
from importlib.util import find_spec
from pathlib import Path
from tempfile import NamedTemporaryFile

import msgspec
from msgspec import Struct
from platformdirs import user_cache_path

from forge.processes import needed
from stages.rescue.chat_template import SAMPLE_KEY, SAMPLE_NAME, SAMPLE_TEXT, SAMPLE_VALUE, derive
from stages.rescue.found import Markers

_SIZE = 200_000
"""Maximum characters of a template to examine."""

_SECONDS = 20.0
"""Timeout of the process, in seconds; generous, because the machine may be busy."""

_RENDERING = Path(__file__).with_name("rendering.py")

_Message = Mapping[str, object]


class Template(Struct, frozen=True, kw_only=True):
    """What is known of a chat template: the markers of its calls, None if it has no tools.

    `alternating`: it refuses two user messages in a row, or one right after a tool's result.
    """

    markers: Markers | None = None
    alternating: bool = False


_ONE_AT_A_TIME = threading.Lock()


def examined(chat_template: str) -> Template:
    """What the template reveals; nothing if it cannot be rendered within the limits.

    Takes a fifth of a second the first time, mostly to start a process; what that wrote is kept in the cache folder.
    """
    if not chat_template or len(chat_template) > _SIZE:
        return Template()
    # Concurrent runs on one server need it rendered only once.
    with _ONE_AT_A_TIME:
        return _examined(chat_template)


@functools.lru_cache(maxsize=64)
def _examined(chat_template: str) -> Template:
    asked: _Message = {"role": "user", "content": "Go."}
    said: _Message = {"role": "assistant", "content": SAMPLE_TEXT}
    result: _Message = {"role": "tool", "name": SAMPLE_NAME, "tool_call_id": "call00001", "content": SAMPLE_TEXT}
    # Templates disagree on whether arguments are an object or JSON text; a call must show its key either way.
    arguments = {SAMPLE_KEY: SAMPLE_VALUE}
    calls = [[asked, _call(arguments)], [asked, _call(msgspec.json.encode(arguments).decode())]]
    results = [[*called, result] for called in calls]
    afterwards = [[*answered, asked] for answered in results]
    written = _kept(chat_template, [[asked], [asked, asked], [asked, said], *calls, *results, *afterwards])
    if written is None:
        return Template()
    once, twice, with_text, *rest = written
    with_call, pairs = rest[:2], zip(rest[2:4], rest[4:], strict=True)
    found = (derive(call, with_text) for call in with_call if call and with_text and SAMPLE_NAME not in chat_template)
    refused = next((after is None for answered, after in pairs if answered is not None), False)
    alternating = once is not None and (twice is None or refused)
    return Template(markers=next(filter(None, found), None), alternating=alternating)


def _call(arguments: object) -> _Message:
    call = {"id": "call00001", "type": "function", "function": {"name": SAMPLE_NAME, "arguments": arguments}}
    return {"role": "assistant", "content": "", "tool_calls": [call]}


_MOST_KEPT = 64
"""Maximum number of results in the cache folder; a template with a date in it is a new one each day."""


def _kept(chat_template: str, conversations: list[list[_Message]]) -> list[str | None] | None:
    """As `_rendered`, but read from the cache folder if the same program has rendered the same before."""
    try:
        folder = user_cache_path("forge") / "templates"
        jinja = find_spec("jinja2")
        program = (
            _RENDERING.read_bytes(),
            sys.version,
            jinja and jinja.origin and Path(jinja.origin).stat().st_mtime_ns,
        )
    except (OSError, RuntimeError):  # a user without a home folder, or a frozen program
        return _rendered(chat_template, conversations)
    asked = blake2b(repr((program, chat_template, conversations)).encode(errors="replace"), digest_size=16)
    file = folder / f"{asked.hexdigest()}.json"
    with suppress(OSError, ValueError):  # not there, or damaged
        read = msgspec.json.decode(file.read_bytes(), type=list[str | None])
        if len(read) == len(conversations):
            return read
    written = _rendered(chat_template, conversations)
    if written is not None:
        with suppress(OSError):  # then it is rendered again
            folder.mkdir(parents=True, exist_ok=True)
            with NamedTemporaryFile(dir=folder, suffix=".part", delete=False) as part:
                part.write(msgspec.json.encode(written))
            Path(part.name).replace(file)
            newest = sorted(folder.iterdir(), key=lambda one: one.stat().st_mtime_ns, reverse=True)
            for old in newest[_MOST_KEPT:]:
                old.unlink(missing_ok=True)
    return written


def _rendered(chat_template: str, conversations: list[list[_Message]]) -> list[str | None] | None:
    """The conversations as rendered by the template; None, and a log entry, if it exceeded a limit."""
    path = [place for place in sys.path if isinstance(place, str)]
    question = json.dumps({"path": path, "template": chat_template, "conversations": conversations})
    program = sys.executable or ""
    # A frozen program is not an interpreter: it would start itself again.
    python = not getattr(sys, "frozen", False) and Path(program).name.lower().startswith(("python", "pypy"))
    try:
        done = subprocess.run(  # noqa: S603 - forge's own file
            [program if python else "", "-I", str(_RENDERING)],
            input=question.encode(),
            capture_output=True,
            timeout=_SECONDS,
            check=True,
            env=needed(),
        )
        return msgspec.json.decode(done.stdout, type=list[str | None])
    except subprocess.CalledProcessError as error:
        last = error.stderr.decode(errors="replace").strip().rpartition("\n")[2]
        why = last[:200] if last and error.returncode > 0 else "it took too much time or memory"
    except subprocess.TimeoutExpired:
        why = f"it took longer than {_SECONDS:.0f} seconds"
    except (OSError, msgspec.DecodeError) as error:
        why = str(error)[:200] if python else f"it takes a Python interpreter, and this program is {program!r}"
    logging.getLogger("forge").warning(
        "the model's chat template cannot be rendered here (%s), so forge does not know its markup of calls", why
    )
    return None
