"""`forge mcp` under a client that cancels: a thousand calls at once, before, while and after they run."""

import json
import random
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.mcp.test_forge_mcp import WORDS
from tests.scripted_server import calling
from tests.serving import JsonHandler, process, serve

ABOUT = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}


class Handler(JsonHandler):
    """A model that reports what it was asked."""

    def post(self, body: object) -> None:
        assert isinstance(body, dict)
        said = [message["content"] for message in body["messages"] if message["role"] == "user"]
        self.tell(200, calling("report", text=f"R:{said[-1]}"))


class Served:
    """The process, and its messages."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.process = process

    def send(self, *messages: Mapping[str, object]) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(b"".join(json.dumps({"jsonrpc": "2.0", **m}).encode() + b"\n" for m in messages))
        self.process.stdin.flush()

    def until(self, wanted: str) -> Iterator[dict[str, object]]:
        """The answers up to that one's."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            told = json.loads(line)
            if "method" not in told:
                yield told
                if told["id"] == wanted:
                    return

    @property
    def memory(self) -> int:
        """In MB."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return next(int(line.split()[1]) // 1024 for line in status.splitlines() if line.startswith("VmRSS"))

    @property
    def children(self) -> str:
        return Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text()


@contextmanager
def served() -> Iterator[Served]:
    with (
        process(__file__) as address,
        subprocess.Popen([sys.executable, *WORDS, "--backend", address], stdin=-1, stdout=-1, stderr=-3) as made,
    ):
        there = Served(made)
        there.send({"id": "i", "method": "initialize", "params": ABOUT}, {"method": "notifications/initialized"})
        assert [*there.until("i")]
        yield there
        assert made.stdin is not None
        made.stdin.close()
        assert made.wait(30) == 0


@pytest.mark.skipif(sys.platform != "linux", reason="it reads /proc")
def test_a_storm_of_cancellations_mixes_up_no_answer_and_leaves_nothing_behind() -> None:
    chance = random.Random(7)  # noqa: S311
    with served() as there:
        peaks, descriptors = [], []
        for turn in range(5):
            cancelled, made = set[str](), [f"{turn}-{number}" for number in range(200)]
            for one in made:
                arguments = {"name": "the_desk_", "arguments": {"message": f"for {one}."}}
                before, after = chance.random() < 0.1, chance.random() < 0.4
                cancel = {"method": "notifications/cancelled", "params": {"requestId": one}}
                unknown = {"method": "notifications/cancelled", "params": {"requestId": one + "?"}}
                ask = {"id": one, "method": "tools/call", "params": arguments}
                there.send(*[cancel] * before, ask, *[cancel] * after, unknown)
                cancelled |= {one} if after else set()
            there.send({"id": "end", "method": "tools/list"})
            told = [*there.until("end")]
            left = {*made} - cancelled - {str(one["id"]) for one in told}
            for one in sorted(left):
                told += there.until(one) if one not in {str(answer["id"]) for answer in told} else ()
            ids = [str(one["id"]) for one in told if one["id"] != "end"]
            assert len({*ids}) == len(ids)
            assert {*made} - cancelled <= {*ids}
            results = [one for one in told if "result" in one and one["id"] != "end"]
            assert all(f"R:for {one['id']}." in json.dumps(one) for one in results)
            peaks.append(there.memory)
            descriptors.append(len([*Path(f"/proc/{there.process.pid}/fd").iterdir()]))
        assert there.children == ""
        assert peaks[-1] < peaks[0] + 40
        assert descriptors[-1] < descriptors[0] + 40


if __name__ == "__main__":
    serve(Handler)
