"""Withheld tools: what a developer is told of the tools that a workflow withholds."""

import logging
from functools import cache


@cache
def tell_withheld(workflow: str, tools: tuple[str, ...]) -> None:
    """Warn of these tools, if there are any; once in a process, however often a workflow of that name is made."""
    if tools:
        logging.getLogger("forge").warning(
            "%s: withheld from the model, because they write and no required step needs them: %s. To have one offered, "
            'name it in optional_steps, give it a rule such as prerequisites, or say effect="read" if it only reads',
            workflow,
            ", ".join(tools),
        )
