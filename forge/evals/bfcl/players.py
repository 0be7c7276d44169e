"""The players of BFCL: forge in its modes, the server's own tool calls, and BFCL's prompt."""

import msgspec

from forge.evals.bfcl.checker import Checker
from forge.evals.bfcl.conversations import CONVERSATION
from forge.evals.bfcl.one_turn import forge_turn, prompted_turn, server_turn
from forge.evals.bfcl.several_turns import forge_conversation, prompted_conversation
from forge.evals.plain_player import PLAIN
from forge.evals.player import Player, RunEnd, Task


def players(checker: Checker) -> dict[str, Player]:
    """The players by name; each plays a question of one turn, and a conversation."""

    async def prompted(task: Task) -> RunEnd:
        specs = task.workflow.rules.tools
        prompt = checker.prompt(
            [
                {"name": one.name, "description": one.description, "parameters": msgspec.json.decode(one.parameters)}
                for one in specs
            ]
        )
        return await (prompted_conversation if _is_conversation(task) else prompted_turn)(task, prompt)

    made = (
        Player(name="forge", about="forge, in the mode asked for", play=_forge),
        Player(name="server", about="the server's own tool calls", play=_server, wire="openai"),
        Player(name="bfcl-prompt", about="BFCL's own prompt, read as Python calls", play=prompted, wire="openai"),
    )
    return {player.name: player for player in made}


def _is_conversation(task: Task) -> bool:
    return task.workflow.name == CONVERSATION


async def _forge(task: Task) -> RunEnd:
    return await (forge_conversation if _is_conversation(task) else forge_turn)(task)


async def _server(task: Task) -> RunEnd:
    return await (PLAIN.play if _is_conversation(task) else server_turn)(task)
