"""A row of results: one run of one scenario with one seed, by one configuration of one model."""

from msgspec import Struct

from forge.evals.scenario import RunVerdict

ROW_VERSION = 1
"""Files of another version are refused: their columns may mean something else."""


class Configuration(Struct, frozen=True, kw_only=True):
    """What plays a scenario. Two rows with the same scenario and seed and other configurations make a pair.

    `player`: `forge`, `plain` (an ordinary OpenAI-style loop), or a peer such as `pydantic-ai`. `mode`, `ablation`,
    `compact` and `think` are options of forge; empty: not asked for by name. `backend` is what the server is (the name
    of its profile), not where. `temperature` None: as recommended.
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
        """Who plays, and how."""
        options = (self.mode, self.ablation, self.compact, self.think)
        return " ".join(filter(None, (self.player, *options)))

    @property
    def name(self) -> str:
        """That, and the temperature if one was asked for."""
        return self.way if self.temperature is None else f"{self.way} t={self.temperature:g}"


RowKey = tuple[Configuration, str, int]
"""What is run once: a configuration, the name of a scenario, and a seed."""


class Row(Struct, frozen=True, kw_only=True):
    """One run. Times in seconds, `calls` are model calls, `cost` is in the currency of the workflow's price.

    `end`: how the run ended by its own word: an outcome, the name of a Halt, `Timeout`, or the exception's name.
    `performed` counts tool calls, `retries` the corrections of replies without a usable call, `step_nudges` those of
    calls before their time, `rescued` the calls that were found in text or repaired. `started` is in seconds since
    1970; `journals` are paths beside the file of results, one for each of the user's messages. `digest` is a hash of
    all that the model was sent and answered, empty if not known: runs with the same one are one run repeated.
    `scenario_digest` is one of the scenario's code, with its texts and checks, empty if not known: two runs with
    different ones are not of the same task. `planned` is how many runs its configuration was to have in the file when
    it was made, 0 if not known. `unanswered` says what kept its last model call from being answered, as `timeout` or
    `status`, empty if it was answered.
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
        """Whether it did not finish because the time ran out, of the run or of its last model call."""
        return self.verdict == "unfinished" and "timeout" in {self.end.lower(), self.unanswered}

    @property
    def key(self) -> RowKey:
        """A file is resumed by it."""
        return (self.configuration, self.scenario, self.seed)


def of_one_task(first: Row, second: Row) -> bool:
    """Whether both runs are of the scenario as it is, as far as is known: it was not changed between them."""
    known = {row.scenario_digest for row in (first, second)} - {""}
    return len(known) < 2
