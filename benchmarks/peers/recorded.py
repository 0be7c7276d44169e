"""Numbers of peers that are not measured here: recorded in one run beside the same baseline, on another machine.

CPU a turn as a multiple of the loop without a framework (`raw_msgspec`), by turns of a run; CPython 3.11.7, two
cores of an AMD EPYC, agno 3.1.10, smolagents 1.26.0, pydantic-ai-slim 2.68.0, openai-agents 0.24.0, langchain
1.4.7, strands-agents 1.62.0, forge-guardrails 0.9.3. The first three lengths are of one run, the last of another.
"""

Ratios = dict[int, float]

HTTP: dict[str, Ratios] = {
    "agno": {10: 4.56, 50: 13.3, 200: 44.7, 1000: 124},
    "smolagents": {10: 5.35, 50: 16.8, 200: 63.3, 1000: 189},
    "pydantic-ai": {10: 6.61, 50: 17.1, 200: 53.6, 1000: 140},
    "openai-agents": {10: 5.91, 50: 17.6, 200: 58.8, 1000: 166},
    "langchain": {10: 6.01, 50: 15.8, 200: 47.7, 1000: 128},
    # Its recursion ends a run between 300 and 400 turns.
    "strands": {10: 6.26, 50: 17.8, 200: 80.8},
}

GUARDRAILS_HTTP: Ratios = {10: 1.86, 50: 2.12, 200: 3.10, 1000: 6.35}
GUARDRAILS_STUB: Ratios = {10: 3.84, 50: 17.8, 200: 96.3, 1000: 780}
GUARDRAILS_IMPORT = 2.10
"""CPU of its import, as a multiple of that of httpx and msgspec."""
