"""The commonest way to use forge, which the suite lacks: tools, a plain request, no declared steps."""

from forge import Workflow, tool
from forge.errors import ToolResolutionError
from forge.evals.scenario import Scenario, World

_NUMBERS = {"Ana": "+1 555 0101", "Ben": "+1 555 0102", "Carla": "+1 555 0103"}


@tool(effect="read")
def find_contact(name: str) -> dict[str, str]:
    """Find somebody's telephone number.

    Args:
        name: Their first name.
    """
    if name not in _NUMBERS:
        raise ToolResolutionError(f"there is no contact {name!r}; there are: {', '.join(_NUMBERS)}")
    return {"name": name, "number": _NUMBERS[name]}


@tool
def send_message(number: str, text: str) -> str:
    """Send a text message, for example to +1 555 0199.

    Args:
        number: A telephone number.
        text: What to say.
    """
    return f"Sent to {number}."


@tool
def tell(name: str, text: str) -> str:
    """Tell somebody something.

    Args:
        name: Whom, for example Alice.
        text: What to say.
    """
    return f"{name} was told."


@tool(approval=True)
def delete_contact(name: str) -> str:
    """Delete a contact."""
    return f"{name} is deleted."


@tool(effect="read")
def list_contacts() -> list[str]:
    """List all contacts."""
    return [*_NUMBERS]


def _scenario(name: str, message: str, workflow: Workflow) -> Scenario:
    world = World(workflow=workflow, messages=(message, "And do the same for Ben."), right=lambda _: "")
    return Scenario(name=name, about=message, world=lambda _: world, ideal_calls=2)


WORLDS = (
    _scenario("plain_tell", "Tell Ana that I am late.", Workflow("tell", tools=[tell], on_text="respond")),
    _scenario(
        "plain_message",
        "Write to Ana that I am late.",
        Workflow("message", tools=[find_contact, send_message], on_text="respond"),
    ),
    _scenario(
        "plain_question",
        "What is Ana's number?",
        Workflow("question", tools=[find_contact, list_contacts], on_text="accept"),
    ),
    _scenario(
        "plain_delete",
        "Delete Ana.",
        Workflow("delete", tools=[list_contacts, find_contact, delete_contact], on_text="respond"),
    ),
    _scenario(
        "plain_all",
        "Send Carla's number to Ana.",
        Workflow("all", tools=[find_contact, list_contacts, send_message, tell, delete_contact], on_text="respond"),
    ),
    _scenario(
        "plain_ending",
        "Write to Ana that I am late.",
        Workflow("ending", tools=[find_contact, tell, send_message], terminal_tool="send_message"),
    ),
    _scenario(
        "plain_grounded",
        "Write to Ana that I am late.",
        Workflow(
            "grounded", tools=[find_contact, send_message], on_text="accept", grounded={"send_message": ["number"]}
        ),
    ),
)
