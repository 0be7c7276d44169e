"""A row of results: one run of one scenario with one seed, by one configuration of one model."""

from msgspec import Struct

from forge.evals.scenario import Verdict

ROW_VERSION = 1
"""Files of another version are refused: their columns may mean something else."""


class Configuration(Struct, frozen=True, kw_only=True):
    """What plays a scenario. Two rows with the same scenario and seed and other configurations make a pair.

    `player`: `forge`, `plain` (an ordinary OpenAI-style loop), or a peer such as `pydantic-ai`. `mode`, `ablation`,
    `compact` and `think` are options of forge; empty: not asked for by name.
    """

    model: str
    backend: str
    player: str = "forge"
    mode: str = ""
    ablation: str = ""
    compact: str = ""
    think: str = ""

    @property
    def name(self) -> str:
        """What a column of a table is headed with, without the model."""
        return " ".join(filter(None, (self.player, self.mode, self.ablation, self.compact, self.think)))


class Row(Struct, frozen=True, kw_only=True):
    """One run. Times in seconds, `calls` are model calls, `cost` is in the currency of the workflow's price.

    `end`: how the run ended by its own word: an outcome, the name of a Halt, `Timeout`, or the exception's name.
    `started` is in seconds since 1970; `journal` is a path beside the file of results.
    """

    version: int = ROW_VERSION
    configuration: Configuration
    scenario: str
    tags: tuple[str, ...] = ()
    seed: int
    verdict: Verdict
    why: str = ""
    end: str
    calls: int
    ideal_calls: int
    context_tokens: int
    performed: int = 0
    retries: int = 0
    tool_errors: int = 0
    rescued: int = 0
    compactions: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    cost: float | None = None
    seconds: float = 0.0
    started: float = 0.0
    commit: str = ""
    journal: str = ""

    @property
    def key(self) -> tuple[Configuration, str, int]:
        """What is run once: a file is resumed by it."""
        return (self.configuration, self.scenario, self.seed)
