"""The profile that follows from what was found: the strongest mode that the server really enforces."""

from msgspec.structs import replace

from forge.backends.doctor.facts import Facts, constrains
from forge.backends.profile import Profile
from stages.serialize import Mode
from stages.wire.wires import Constrain, ToolChoice


def choose(facts: Facts, known: Profile) -> Profile:
    """The profile of the server: `known` is that of its kind, and what was found goes before it.

    Constrained where a schema is obeyed; else native where a right call came as a call; else prompted. What was not
    asked stays as it is known. Pure.
    """
    constrain = _constrain(facts, known)
    native = known.native_calls if facts.calls is None else facts.calls not in {"refused", "ignored"}
    told = known.context in {"props", "show"}
    return replace(
        known,
        mode=_mode(facts, known, constrain),
        constrain=constrain,
        native_calls=native,
        tool_choice=_tool_choice(facts, known) if native else "none",
        # A template that is shown says more than one refusal does: it is asked at each connection.
        alternating=known.alternating if facts.template is not None else facts.alternating,
        tokenizer=known.tokenizer if facts.tokenizer is None else facts.tokenizer,
        logprobs=known.logprobs if facts.logprobs is None else facts.logprobs,
        context_tokens=known.context_tokens if told else facts.context_tokens or known.context_tokens,
    )


def _constrain(facts: Facts, known: Profile) -> Constrain:
    """The way of asking for a schema that is obeyed; `none` where one was tried, and none is."""
    tried: tuple[tuple[bool | None, Constrain], ...] = (
        (facts.schema, "format" if facts.kind == "ollama" else "json_schema"),
        (facts.strict, "strict"),
        (facts.object_schema, "json_object"),
        (facts.structured_outputs, "structured_outputs"),
        (facts.guided_json, "guided_json"),
    )
    found = next((way for obeyed, way in tried if obeyed), None)
    return found or (known.constrain if all(obeyed is None for obeyed, _ in tried) else "none")


def _tool_choice(facts: Facts, known: Profile) -> ToolChoice:
    if facts.required is None and facts.named is None:
        return known.tool_choice
    # A name alone is no use: where several tools may be called, a call of any is demanded.
    return "none" if not facts.required else "named" if facts.named else "required"


def _mode(facts: Facts, known: Profile, constrain: Constrain) -> Mode:
    if constrain != "none":
        return "constrained" if constrains(facts) else known.mode
    if facts.calls is None:
        return "native" if known.mode == "constrained" and known.native_calls else known.mode
    return "native" if facts.calls == "native" and facts.valid_arguments else "prompted"


def reason(facts: Facts, chosen: Profile) -> str:
    """Why that mode, in a sentence for a person."""
    match chosen.mode:
        case "constrained":
            return "constrained: the server keeps replies to the schema of the calls that are legal"
        case "native":
            return "native: no schema is enforced, and its own tool calls came, with right arguments"
        case "prompted":
            why = {
                "text": "calls come as text",
                "unused": "no native call came",
                "ignored": "tools are ignored",
                "refused": "tools are refused",
                "native": "native calls came with wrong arguments",
                None: "native calls were not tried",
            }
            return f"prompted: no schema is enforced, and {why[facts.calls]}"
