"""A program that writes once and hangs in the middle of it, to be killed; started again, it goes on with its run."""

import asyncio
import sys
from pathlib import Path

from forge import Workflow, resume_journal, run, tool
from forge.interpreters.scripted import Scripted, call
from stages.message import Tool


def main(folder: Path) -> None:
    """Run, or go on; print the value."""
    journal = folder / "journal"

    @tool
    def write() -> str:
        """Write a line, say so, and wait for ever."""
        with (folder / "written").open("a") as file:
            file.write("once\n")
        print("written", flush=True)
        sys.stdin.read()
        return "written"

    @tool
    def finish() -> str:
        """Finish."""
        return "ok"

    workflow = Workflow("crashing", tools=[write, finish], terminal_tool="finish")
    if journal.exists():
        result = asyncio.run(resume_journal(workflow, journal, backend=Scripted([call("finish")])))
    else:
        result = asyncio.run(run(workflow, "Go.", backend=Scripted([call("write")]), journal=str(journal)))
    ended = result.unwrap()
    texts = [m.text for m in ended.state.history if isinstance(m, Tool)]
    (folder / "history").write_text("\n".join(texts))
    print(ended.value)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
