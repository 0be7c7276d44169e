"""How many tokens of context a run may count on, and where that number comes from."""

from enum import StrEnum

from msgspec import Struct

from forge.backends.servers.hardware import GIB, HardwareProfile
from forge.errors import DefinitionError

SMALL = 4096
"""Tokens that every server has: what is assumed where nothing is known."""

_VRAM_TIERS = ((48 * GIB, 262_144), (24 * GIB, 32_768))
"""Ollama's own: https://docs.ollama.com/context-length."""

_RAM_TIERS = ((32 * GIB, 32_768), (16 * GIB, 16_384), (8 * GIB, 8_192))
"""Without a GPU the cache is in the machine's memory, and long prompts take minutes: these are forge's."""

_ROUNDED = GIB // 2
"""A card that is sold as 24 GB has a little less, and so has a machine: it still counts as one."""


class BudgetMode(StrEnum):
    """Who decides how large the context is: the server, the user, or forge by the memory; the fast one takes half."""

    BACKEND = "backend"
    MANUAL = "manual"
    FORGE_FULL = "forge-full"
    FORGE_FAST = "forge-fast"


class ResolvedBudget(Struct, frozen=True, kw_only=True):
    """`tokens` of context, and in words where the number comes from."""

    tokens: int
    source: str


def resolve_mode(mode: BudgetMode | None, tokens: int | None) -> BudgetMode:
    """The mode, by default manual where tokens are given. DefinitionError where the two contradict each other."""
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
    """The budget, half of it in the fast mode: shorter prompts are read faster."""
    if mode is not BudgetMode.FORGE_FAST:
        return budget
    return ResolvedBudget(tokens=max(1, budget.tokens // 2), source=f"half of {budget.tokens}: {budget.source}")


def by_vram(hardware: HardwareProfile | None) -> ResolvedBudget:
    """Ollama's tier for the GPUs' memory; None is a machine that cannot be looked at."""
    if hardware is None:
        return ResolvedBudget(tokens=SMALL, source="the server is on another machine and says nothing")
    if not hardware.gpus:
        return ResolvedBudget(tokens=SMALL, source=hardware.source)
    tokens = next((tokens for size, tokens in _VRAM_TIERS if hardware.vram_bytes + _ROUNDED >= size), SMALL)
    names = ", ".join(gpu.name for gpu in hardware.gpus)
    return ResolvedBudget(tokens=tokens, source=f"{hardware.vram_gib:.0f} GiB for models ({names}; {hardware.source})")


def by_ram(hardware: HardwareProfile) -> ResolvedBudget:
    """What a machine without a GPU bears."""
    tokens = next((tokens for size, tokens in _RAM_TIERS if hardware.ram_bytes + _ROUNDED >= size), SMALL)
    return ResolvedBudget(tokens=tokens, source=f"no GPU, {hardware.ram_bytes / GIB:.0f} GiB of memory")


class OllamaSays(Struct, frozen=True, kw_only=True):
    """What Ollama knows of a model: the context it is loaded with, the one its Modelfile sets, the most it can have."""

    loaded: int | None = None
    modelfile: int | None = None
    most: int | None = None


def ollama_budget(
    mode: BudgetMode, tokens: int | None, says: OllamaSays, hardware: HardwareProfile | None
) -> ResolvedBudget:
    """The context that Ollama is asked for (`num_ctx`), which makes it so: it never cuts a prompt without a word."""
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
