"""Records made anew: flawless players, monkeys that listen to one now and then, and forged sessions of the proxy."""

import asyncio
import json
import random
from collections.abc import Iterator

import msgspec
from msgspec.structs import replace

from stages.effect import Send
from tests.decisions.monkey import Monkey
from tests.decisions.records import Run, Said, Turn, said
from tests.decisions.running import MODES, SCENARIOS, Replier, run
from tests.decisions.turning import KINDS, turned
from tests.evals import (
    players_deciding,
    players_lookups,
    players_orders,
    players_recovery,
    players_refraining,
    players_seeds,
)
from tests.evals.players import Player, Table
from tests.soak.test_forged_histories import PARAMETERS, POLICY, Forger

_FAMILIES = (players_deciding, players_refraining, players_orders, players_lookups, players_seeds, players_recovery)
_PERFECT: dict[str, Player] = {name: player for family in _FAMILIES for name, player in family.PERFECT.items()}
_ABLATIONS = ("bare", "no_nudge", "no_steps", "no_recovery", "no_narrowing", "no_withholding", "no_grounding")
_ABLATED = ("triage", "refund", "order", "chain", "tool_selection", "error_recovery", "act_or_not", "fill_form")
_IN_A_LOOP = (*_ABLATED, "sequential_3step", "wrong_turn", "retry_later", "plain_tell", "plain_all", "plain_delete")


def recorded_runs() -> Iterator[Run]:
    with asyncio.Runner() as runner:
        for made in _played():
            if table := _table(made):
                yield run(made, _flawless(table), runner)
        for made in _typed():
            yield run(made, Monkey(made.name, made.mode, _table(made)), runner)


def _flawless(table: Table) -> Replier:
    async def reply(effect: Send) -> Said:
        return said((await table(effect)).reply)

    return reply


def _played() -> Iterator[Run]:
    for scenario in (name for name in SCENARIOS if _knows(name)):
        for seed in (1, 2):
            for mode in MODES:
                yield Run(source="player", scenario=scenario, seed=seed, mode=mode)
    for scenario in _ABLATED:
        yield Run(source="player", scenario=scenario, seed=1, mode="native", ablation="bare")


def _typed() -> Iterator[Run]:
    for scenario in SCENARIOS:
        for mode in MODES:
            for take in range(1 if scenario.endswith("_stateful") else 4):
                yield Run(source="monkey", scenario=scenario, seed=take + 1, mode=mode, take=take)
    for number, scenario in enumerate(_ABLATED):
        for mode in MODES:
            for ablation in ("bare", _ABLATIONS[1 + number % (len(_ABLATIONS) - 1)]):
                yield Run(source="monkey", scenario=scenario, seed=3, mode=mode, ablation=ablation)
    for scenario in ("compaction_chain_p1", "compaction_chain_p3", "needle", "chain"):
        for compact in ("sliding", "none"):
            yield Run(source="monkey", scenario=scenario, seed=5, mode="native", compact=compact)
    for unsure in ("measure", "stop", "think", "vote", "larger"):
        for scenario in ("triage", "refund", "chain", "act_or_not", "plain_all"):
            for mode in ("native", "constrained"):
                yield Run(source="monkey", scenario=scenario, seed=6, mode=mode, unsure=unsure)
    for scenario in _IN_A_LOOP:
        for take in range(3):
            made = Run(source="middleware", scenario=scenario, seed=take + 1, mode="native", take=take)
            # The middleware calculates nothing, and says so to a workflow that does.
            yield replace(made, ablation="no_calculation") if scenario == "refund" else made


def _knows(scenario: str) -> Player | None:
    return _PERFECT.get(scenario.removesuffix("_stateful"))


def _table(made: Run) -> Table | None:
    player = _knows(made.scenario)
    if player is None:
        return None
    world = SCENARIOS[made.scenario].world(made.seed)
    calculates = made.ablation not in {"no_calculation", "bare"}
    return Table(world, player, MODES[made.mode], calculates=calculates, responds=True)


def recorded_turns() -> Iterator[Turn]:
    forger = Forger(28)
    draw = forger.chance
    for number in range(480):
        protocol = draw.choice(["chat", "messages", "responses"])
        body = {"chat": forger.chat, "messages": forger.messages, "responses": forger.responses}[protocol]()
        policy = draw.choice(["", 'scope = "session"\n' + POLICY, 'scope = "answer"\n' + POLICY])
        replies = [said(forger.reply()) if draw.random() < 0.4 else _fitting(draw) for _ in range(4)]
        yield turned(
            Turn(
                name=f"turn/{number}",
                protocol=protocol,
                kind=draw.choice(KINDS),
                policy=policy,
                body=msgspec.Raw(msgspec.json.encode(body)),
                replies=tuple(replies),
            )
        )


def _fitting(draw: random.Random) -> Said:
    """A call that fits some request, as one or in words."""
    name = draw.choice([*PARAMETERS])
    own = PARAMETERS[name]
    arguments = json.dumps({own: draw.choice(["a", "b", "ok", "x.py"])} if own else {})
    match draw.randrange(5):
        case 0:
            return Said(text=f'<tool_call>{{"name":"{name}","arguments":{arguments}}}</tool_call>')
        case 1:
            return Said(text=f'I do it.\n```json\n{{"name":"{name}","arguments":{arguments}}}\n```')
        case 2:
            return Said(text=f'{{"tool":"{name}","args":{arguments}}}')
        case _:
            return Said(calls=(("r1", name, arguments),), finish="tool_calls")
