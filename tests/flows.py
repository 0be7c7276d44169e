"""The workflow that the scripts run, with tools that remember their calls; two plain tools; and an approver."""

import asyncio

from forge import Approved, Ask, ToolFailed, ToolResolutionError, Workflow, tool
from forge.connection import Backend, Connection
from stages.tool import Prerequisite


@tool(effect="read")
def look(what: str) -> str:
    """Look something up."""
    return f"{what} is 7"


@tool
def finish() -> str:
    """Finish."""
    return "ok"


async def approve(question: Ask) -> Approved:
    """The answer of a person who approves of every call."""
    return Approved(digest=question.digest)


class Desk:
    """A workflow of four tools; `log` are the calls that really ran."""

    def __init__(self, **options: object) -> None:
        self.log: list[str] = []
        self.workflow = Workflow(
            "desk",
            tools=[
                tool(effect="read")(self.look),
                tool(prerequisites=[Prerequisite(tool="look", match_arg="what")])(self.write),
                tool(self.fail),
                tool(self.finish),
            ],
            required_steps=["look"],
            optional_steps=["fail"],
            terminal_tool="finish",
            system_prompt="Do the work.",
            **options,  # type: ignore[arg-type]  # options of a test, passed on as they are
        )

    def look(self, what: str) -> str:
        """Look something up."""
        self.log.append(f"look {what}")
        if what == "nothing":
            raise ToolResolutionError("There is nothing of that name; try 'a'.")
        return f"{what} is 7"

    async def write(self, what: str, text: str) -> dict[str, str]:
        """Write something down."""
        self.log.append(f"write {what}")
        return {"written": text}

    def fail(self, how: str) -> str:
        """Fail."""
        self.log.append(f"fail {how}")
        if how == "for good":
            raise ToolFailed("The printer is gone.")
        raise RuntimeError(f"broken: {how}")

    def finish(self, result: str | None = None) -> str | None:
        """Finish."""
        self.log.append("finish")
        return result


def connected(backend: Backend) -> Connection:
    """The connection to a backend, closed again."""

    async def go() -> Connection:
        async with backend.connect() as connection:
            return connection

    return asyncio.run(go())
