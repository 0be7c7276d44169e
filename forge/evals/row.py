"""A row of results: one run of one scenario with one seed, by one configuration of one model."""

from msgspec import Struct

from forge.evals.scenario import RunVerdict

ROW_VERSION = 1
"""Other versions are refused: their columns may have other meanings."""


class Configuration(Struct, frozen=True, kw_only=True):
    """What plays a scenario. Rows with the same scenario and seed and different configurations are a pair.

    `player`: `forge`, `plain` (an ordinary OpenAI-style loop), or a peer such as `pydantic-ai`. `mode`, `ablation`,
    `compact` and `think` are options of forge; empty means the default. `backend` is the server's kind (the name of its
    profile), not its address. `temperature` None: as recommended.
    """

    model: str
    backend: str
    player: str = "forge"
    mode: str = ""
    ablation: str = ""
    compact: str = ""
    think: str = ""
    temperature: float | None = None

    @property
    def way(self) -> str:
        """The player and its options."""
        options = (self.mode, self.ablation, self.compact, self.think)
        return " ".join(filter(None, (self.player, *options)))

    @property
    def name(self) -> str:
        """The player, its options, and the temperature if one was given."""
        return self.way if self.temperature is None else f"{self.way} t={self.temperature:g}"


RowKey = tuple[Configuration, str, int]
"""The identity of a run: configuration, name of the scenario, and seed."""


class Row(Struct, frozen=True, kw_only=True):
    """One run. Times are in seconds, `calls` are model calls, `cost` is in the currency of the workflow's price.

    `end`: an outcome, the name of a Halt, `Timeout`, or the name of an exception. `performed` counts tool calls,
    `retries` corrections of replies without a usable call, `step_nudges` corrections of premature calls, `rescued`
    calls that were found in text or repaired. `started` is in seconds since 1970. `journals` are paths relative to the
    results file, one per user message. `digest` is a hash of everything sent and answered, empty if unknown: runs with
    the same digest are repetitions. `scenario_digest` is a hash of the scenario's code, empty if unknown: runs with
    different ones had different tasks. `planned` is the number of runs planned for its configuration at that time, 0 if
    unknown. `unanswered` says why its last model call was not answered, such as `timeout` or `status`; empty if it was.
    """

    version: int = ROW_VERSION
    configuration: Configuration
    scenario: str
    tags: tuple[str, ...] = ()
    seed: int
    verdict: RunVerdict
    why: str = ""
    end: str
    calls: int
    ideal_calls: int
    context_tokens: int
    performed: int = 0
    retries: int = 0
    step_nudges: int = 0
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
    journals: tuple[str, ...] = ()
    digest: str = ""
    scenario_digest: str = ""
    planned: int = 0
    unanswered: str = ""

    @property
    def timed_out(self) -> bool:
        """Whether it was unfinished because of a timeout, of the run or of its last model call."""
        return self.verdict == "unfinished" and "timeout" in {self.end.lower(), self.unanswered}

    @property
    def key(self) -> RowKey:
        """The identity of the run, by which a file is resumed."""
        return (self.configuration, self.scenario, self.seed)


def of_one_task(first: Row, second: Row) -> bool:
    """Whether both runs had the same task, as far as is known: the scenario was not changed in between."""
    known = {row.scenario_digest for row in (first, second)} - {""}
    return len(known) < 2
