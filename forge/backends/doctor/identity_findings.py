"""Findings that need no further question: which server it is, its context, its template."""

from collections.abc import Iterator

from forge.backends.doctor.facts import Facts, Finding, FindingVerdict, one_line
from forge.backends.template import examined

_ASKED = "what it says of itself, at the addresses that llama.cpp, vLLM, Ollama and LM Studio have for it"

NAMES = {
    "openai": "OpenAI",
    "llama-server": "llama.cpp",
    "vllm": "vLLM",
    "ollama": "Ollama",
    "lm-studio": "LM Studio",
    "openai-compatible": "a server of the chat completions protocol, of no kind that forge knows",
}


def about(facts: Facts) -> Iterator[Finding]:
    """The findings of who the server is, once it has been asked."""
    came = " ".join(filter(None, (NAMES[facts.kind], facts.build)))
    means = f"known because {facts.known_by}" if facts.known_by else "nothing about it is taken for granted"
    yield Finding(topic="server", asked=_ASKED, verdict="yes" if facts.known_by else "unclear", came=came, means=means)
    yield _context(facts)
    if facts.slots is not None:
        means = "requests wait for one another" if facts.slots == 1 else f"{facts.slots} requests run at the same time"
        yield Finding(topic="slots", asked="GET /props", verdict="yes", came=str(facts.slots), means=means)
    if facts.template is not None:
        yield _template(facts, facts.template)


def _context(facts: Facts) -> Finding:
    if facts.context_tokens is None:
        means, does = (
            "it does not say how much it takes",
            "counts on 4,096 tokens; forge run --context gives it the true number",
        )
        return Finding(topic="context", asked=_ASKED, verdict="unclear", came="no number", means=means, does=does)
    source = f"as {facts.context_source} says"
    return Finding(topic="context", asked=_ASKED, verdict="yes", came=f"{facts.context_tokens:,} tokens", means=source)


def _template(facts: Facts, template: str) -> Finding:
    tools = facts.template_tools
    seen = examined(template)
    found = seen.markers if tools else None
    written = f", and writes calls after {one_line(found.opening, 40)!r}" if found else ""
    turns = ", wants roles in turn" if seen.alternating else ""
    came = f"{'has a place for tools' if tools else 'has no place for tools'}{written}{turns}"
    means = "" if tools else "`tools` would be ignored without a word"
    does = "finds such calls in text too" if found else ""
    verdict: FindingVerdict = "yes" if tools else "no"
    return Finding(topic="chat template", asked="GET /props", verdict=verdict, came=came, means=means, does=does)
