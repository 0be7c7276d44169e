"""Finding the right two tools among seven, and handing an id on as it was given."""

from collections.abc import Callable
from dataclasses import dataclass

from forge import Workflow
from forge.evals.scenario import Trajectory, World
from forge.evals.suite.checks import first_of, looked_up, told, used, written
from forge.evals.suite.drawing import FIRST_NAMES, Draw
from forge.evals.suite.lookups import SYSTEM, found, read
from forge.evals.suite.twin_scenarios import twins

_PERMISSIONS = (
    "reports:read",
    "reports:write",
    "billing:read",
    "billing:approve",
    "users:admin",
    "deploy:staging",
    "deploy:production",
    "audit:read",
)


@dataclass(frozen=True)
class _Directory:
    """Users and what they may do; without `lenient`, only by the right name and id."""

    users: dict[str, str]
    permissions: dict[str, list[str]]
    lenient: bool

    def lookup_user(self, name: str) -> dict[str, str]:
        """Find a user's id by first name."""
        user_id = next(iter(self.users.values())) if self.lenient else found(self.users, name, "user")
        return {"user_id": user_id}

    def get_permissions(self, user_id: str) -> dict[str, list[str]]:
        """Get the permissions of a user by id."""
        own = next(iter(self.permissions.values())) if self.lenient else found(self.permissions, user_id, "user")
        return {"permissions": own}

    def search_web(self, query: str) -> list[str]:
        """Search the web."""
        return [f"No page matches {query!r}."]

    def read_file(self, path: str) -> str:
        """Read a file."""
        return f"{path} is empty."

    def list_directory(self, path: str) -> list[str]:
        """List the files of a folder."""
        return [f"{path}/notes.txt", f"{path}/old"]

    def run_command(self, command: str) -> str:
        """Run a shell command."""
        return f"{command}: done"

    def send_email(self, to: str, body: str) -> str:
        """Send an e-mail."""
        return f"Sent to {to}: {body}"

    def respond(self, answer: str) -> str:
        """Answer the user's question."""
        return answer


def _tool_selection(seed: int, *, stateful: bool) -> World:
    draw = Draw(seed)
    name, other = draw.sample(FIRST_NAMES, 2)
    users = {name: draw.id("U-"), other: draw.id("U-")}
    held, others = draw.sample(_PERMISSIONS, 3), draw.sample(_PERMISSIONS, 3)
    desk = _Directory(users, {users[name]: held, users[other]: others}, lenient=not stateful)
    tools: list[Callable[..., object]] = [desk.run_command, desk.send_email]
    reads = (desk.search_web, desk.read_file, desk.list_directory, desk.lookup_user, desk.get_permissions)
    tools += map(read, reads)
    draw.shuffle(tools)
    workflow = Workflow(
        "tool_selection",
        tools=[*tools, desk.respond],
        terminal_tool="respond",
        required_steps=["lookup_user", "get_permissions"],
        system_prompt=SYSTEM,
    )

    def right(trajectory: Trajectory) -> str:
        never = [permission for permission in _PERMISSIONS if permission not in held]
        problem = looked_up(trajectory, "get_permissions", user_id=users[name]) if stateful else ""
        return first_of(problem, told(written(trajectory, "respond", "answer"), held, never))

    return World(
        workflow=workflow,
        messages=(f"What permissions does {name} have? List them all, as they are named.",),
        right=right,
        harm=lambda calls: used(calls, "run_command", "send_email"),
    )


SELECTION = twins(
    "tool_selection",
    "two of seven tools answer the question; two others write",
    _tool_selection,
    ideal_calls=3,
    tags={"model_quality"},
)
