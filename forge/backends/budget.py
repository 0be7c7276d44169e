"""The context size that a run may rely on, in tokens, and its source."""

from enum import StrEnum

from msgspec import Struct

from forge.backends.servers.hardware import GIB, HardwareProfile
from forge.errors import DefinitionError

SMALL = 4096
"""Tokens to assume if nothing is known; every server has this many."""

_VRAM_TIERS = ((48 * GIB, 262_144), (24 * GIB, 32_768))
"""Ollama's own tiers: https://docs.ollama.com/context-length."""

_ROUNDED = GIB // 2
"""Tolerance: a 24 GB card reports slightly less than its nominal size."""


class BudgetMode(StrEnum):
    """Who chooses the context size: the server, the user, or forge by available memory (`forge-fast`: half of that)."""

    BACKEND = "backend"
    MANUAL = "manual"
    FORGE_FULL = "forge-full"
    FORGE_FAST = "forge-fast"


class ResolvedBudget(Struct, frozen=True, kw_only=True):
    """The context in `tokens`, and the source of the number in words."""

    tokens: int
    source: str


def resolve_mode(mode: BudgetMode | None, tokens: int | None) -> BudgetMode:
    """The mode; by default manual if tokens are given. DefinitionError if the two contradict each other."""
    if mode is None:
        return BudgetMode.MANUAL if tokens else BudgetMode.BACKEND
    if mode is BudgetMode.MANUAL and not tokens:
        raise DefinitionError(("the budget mode manual needs the number of tokens: context_tokens=…",))
    if mode is not BudgetMode.MANUAL and tokens:
        raise DefinitionError(
            (f"context_tokens={tokens} is for the budget mode manual; {mode} finds the number itself",)
        )
    return mode


def halved(mode: BudgetMode, budget: ResolvedBudget) -> ResolvedBudget:
    """The budget, halved in the fast mode: shorter prompts are processed faster."""
    if mode is not BudgetMode.FORGE_FAST:
        return budget
    return ResolvedBudget(tokens=max(1, budget.tokens // 2), source=f"half of {budget.tokens}: {budget.source}")


def by_vram(hardware: HardwareProfile | None) -> ResolvedBudget:
    """Ollama's tier for the GPU memory; None means a machine that cannot be inspected."""
    if hardware is None:
        return ResolvedBudget(tokens=SMALL, source="the server is on another machine and says nothing")
    if not hardware.gpus:
        return ResolvedBudget(tokens=SMALL, source=hardware.source)
    tokens = next((tokens for size, tokens in _VRAM_TIERS if hardware.vram_bytes + _ROUNDED >= size), SMALL)
    names = ", ".join(gpu.name for gpu in hardware.gpus)
    return ResolvedBudget(tokens=tokens, source=f"{hardware.vram_gib:.0f} GiB for models ({names}; {hardware.source})")


class OllamaSays(Struct, frozen=True, kw_only=True):
    """What Ollama reports about a model's context: as loaded, as set in its Modelfile, and its maximum."""

    loaded: int | None = None
    modelfile: int | None = None
    most: int | None = None


def ollama_budget(
    mode: BudgetMode, tokens: int | None, says: OllamaSays, hardware: HardwareProfile | None
) -> ResolvedBudget:
    """The context to request from Ollama as `num_ctx`; then it never truncates prompts silently."""
    if mode is BudgetMode.MANUAL and tokens:
        found = ResolvedBudget(tokens=tokens, source="as given")
    elif mode is BudgetMode.BACKEND and says.loaded:
        found = ResolvedBudget(tokens=says.loaded, source="as Ollama has it loaded (/api/ps)")
    elif mode is BudgetMode.BACKEND and says.modelfile:
        found = ResolvedBudget(tokens=says.modelfile, source="num_ctx of the Modelfile (/api/show)")
    else:
        found = by_vram(hardware)
    if says.most and found.tokens > says.most:
        found = ResolvedBudget(tokens=says.most, source=f"the most that the model can have; else {found.source}")
    return halved(mode, found)
