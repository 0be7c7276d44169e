"""What the proxy changes in a request before the server sees it: tools, options, sampling, volatile lines, size."""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Annotated, Literal, assert_never

import msgspec
from msgspec import UNSET, Meta, Raw, Struct
from msgspec.structs import asdict, replace

from forge.backends.profile import known_sampling
from forge.connection import Setup
from forge.tools import respond_tool
from stages.compaction import ContextBudget, Meter, estimate
from stages.compaction.conversation import CompactedConversation, Placed, compacted_conversation
from stages.effect import RawCall, Reply
from stages.message import Assistant, History, System, Tool, User
from stages.reasoning import split_reasoning
from stages.repair.decoding import decode
from stages.rules import Rules
from stages.serialize import overhead
from stages.tokens import STARTING_RATE
from stages.wildcards import matches
from stages.wire.anthropic.messages import OPTION_NAMES
from stages.wire.deltas import DEFAULT_MAX_TOKENS, Overflow, Sampling
from stages.wire.openai.chat_server import SentTool
from stages.wire.prompted import FORMS
from stages.wire.served import OfferedTool, RequestError, ServerRequest, Thinking, as_sent, fields
from stages.wire.target import Target
from stages.wire.valid import alternating_history
from stages.wire.wires import Wire, wire

# Model options: what a policy adds to a request for its model, where its client says nothing of it. Pure.

_object = msgspec.json.Decoder(dict[str, Raw])
_objects = msgspec.json.Decoder(list[Raw])
_text = msgspec.json.Decoder(str)


def _with_default_sampling(request: ServerRequest, options: Sampling, spoken: Wire, *, same: bool) -> ServerRequest:
    """The request with these options, under the client's own; `max_tokens` stays the client's affair."""
    options = replace(options, max_tokens=UNSET)
    sampled = replace(request, sampling=request.sampling.over(options))
    return _with_missing(sampled, {**_named(options, spoken), **options.extra}) if same else sampled


def _named(options: Sampling, spoken: Wire) -> dict[str, object]:
    """The options that are set, in the backend's words; those that it has not are left out."""
    names = OPTION_NAMES if spoken.name == "anthropic" else spoken.dialect.option_names
    given = ((names.get(name, name), value) for name, value in asdict(options).items() if name != "extra")
    return {name: value for name, value in given if name and value is not UNSET}


def _with_thinking(request: ServerRequest, want: Literal["on", "off"], spoken: Wire, *, same: bool) -> ServerRequest:
    """The request that asks for reasoning or for none, unless its client says something of it."""
    if request.thinking != Thinking():
        return request
    asked = _thinking_fields(request, spoken, wanted=want == "on")
    if same:
        return _with_missing(request, asked)
    return replace(request, sampling=request.sampling.over(Sampling(extra=asked)))


def _thinking_fields(request: ServerRequest, spoken: Wire, *, wanted: bool) -> dict[str, object]:
    match spoken.name:
        case "openai":
            # OpenAI itself has another word, and refuses those that it does not know.
            if spoken.strict:
                return {"reasoning_effort": "medium" if wanted else "none"}
            return {"chat_template_kwargs": {"enable_thinking": wanted}}
        case "ollama":
            return {"think": wanted}
        case "anthropic":
            limit = request.sampling.max_tokens
            budget = (DEFAULT_MAX_TOKENS if limit is UNSET else limit) // 2
            if not wanted:
                return {"thinking": {"type": "disabled"}}
            # The API takes no budget below this.
            return {"thinking": {"type": "enabled", "budget_tokens": budget}} if budget >= _LEAST else {}
        case other:
            assert_never(other)


_LEAST = 1024


def _with_missing(request: ServerRequest, more: Mapping[str, object]) -> ServerRequest:
    """The request with those of the fields that its client does not write; of objects, with their missing keys."""
    given, changes = fields(request), dict[str, object]()
    for name, value in more.items():
        if name not in given:
            changes[name] = value
        elif isinstance(value, Mapping) and bytes(given[name]).startswith(b"{"):
            own: dict[str, Raw] = decode(_object, bytes(given[name]))
            changes[name] = {**value, **own}
    return with_fields(request, changes) if changes else request


_REASONING = frozenset({"reasoning_content", "reasoning", "reasoning_details"})
"""What servers call the reasoning before a reply."""


def _without_earlier_reasoning(request: ServerRequest, *, same: bool) -> ServerRequest:
    """The request whose replies have no reasoning; to Anthropic's API it goes as it came, which does that itself."""
    history = tuple(_bare(m) if isinstance(m, Assistant) else m for m in request.history)
    bare = request if history == request.history else replace(request, history=history)
    if not same or request.protocol != "chat":
        return bare if not same else request
    changes = _changed_messages(request, _without_reasoning)
    return with_fields(bare, changes) if changes else bare


def _bare(reply: Assistant) -> Assistant:
    return replace(reply, text=_text_alone(reply.text), reasoning="")


def _text_alone(text: str) -> str:
    """The text without what stands between the tags of reasoning, to the letter where nothing does."""
    thought, rest = split_reasoning(text)
    return rest if thought else text


def _without_reasoning(message: dict[str, Raw]) -> dict[str, Raw]:
    if bytes(message.get("role", b"")) != b'"assistant"':
        return message
    now = {name: value for name, value in message.items() if name not in _REASONING}
    content = bytes(message.get("content", b""))
    if content.startswith(b'"') and (text := decode(_text, content)) != (bare := _text_alone(text)):
        now["content"] = Raw(msgspec.json.encode(bare))
    return now


def _changed_messages(request: ServerRequest, change: Callable[[dict[str, Raw]], dict[str, Raw]]) -> dict[str, object]:
    """The field `messages` with what changes of them; nothing where nothing does."""
    given = decode(_objects, bytes(fields(request)["messages"]))
    messages = [decode(_object, bytes(raw)) for raw in given]
    now = [change(message) for message in messages]
    if now == messages:
        return {}
    written = zip(given, messages, now, strict=True)
    return {"messages": [raw if was == now else Raw(msgspec.json.encode(now)) for raw, was, now in written]}


# Volatile lines: what agents write into the system prompt anew with each request, so that no cache of it holds. Pure.
#
# Only system messages are looked at, and in them lines that begin as below; all others stay to the letter.

_BILLING = re.compile(r"^x-anthropic-billing-header:[^\n]{0,500}\n{0,3}", re.MULTILINE)
"""Claude Code's line for the accounts of Anthropic's own API."""

_NOW = re.compile(
    r"^[ \t*#<>-]{0,8}(?:(?:the )?(?:current |today's |local |system )?(?:date and time|date & time|datetime|date|time|"
    r"timestamp)|now|today)(?: ?\([^)\n]{0,40}\))?\*{0,2}(?: is\b| ?[:=>])[^\n]{0,200}$",
    re.MULTILINE | re.IGNORECASE,
)
_CLOCK = re.compile(
    r"(?:(?<=\d)T|,? at |, | )?(?<![\d:.])(?:[01]?\d|2[0-3]):[0-5]\d(?::[0-5]\d(?:\.\d{1,9})?)?"
    r"(?: ?[AaPp]\.?[Mm]\b\.?)?(?: ?(?:Z\b|(?:UTC|GMT)?[+-]\d{2}:?\d{2}\b|UTC\b|GMT\b))?"
)
"""A time of day, with what joins it to the date before it and the zone after it."""


_LINES = 64
"""Lines of one message that are changed."""


def _steady(text: str) -> str:
    """The text with the date alone in lines that tell the time, and without Claude Code's line for accounts."""
    return _NOW.sub(lambda line: _CLOCK.sub("", line[0]), _BILLING.sub("", text, _LINES), _LINES)


def _steadied(request: ServerRequest, *, same: bool) -> ServerRequest:
    """The request with steady system messages; a list of texts becomes one text: agents write either."""
    history = tuple(replace(m, text=_steady(m.text)) if isinstance(m, System) else m for m in request.history)
    steadily = replace(request, history=request.history if history == request.history else history)
    return _in_body(steadily) if same else steadily


_SYSTEM = frozenset({b'"system"', b'"developer"'})


def _in_body(request: ServerRequest) -> ServerRequest:
    """The same in the client's own body, which stays as it is where that changes nothing."""
    given = fields(request)
    join = "\n".join if request.protocol == "chat" else _paragraphs
    changes = _changed_messages(request, lambda message: _steady_message(message, join))
    if "system" in given and (system := _content(given["system"], join)) != given["system"]:
        changes["system"] = system
    return with_fields(request, changes) if changes else request


_Join = Callable[[list[str]], str]
"""How a protocol's texts are one text, as forge reads them."""


def _paragraphs(texts: list[str]) -> str:
    return "\n\n".join(filter(None, texts))


def _steady_message(message: dict[str, Raw], join: _Join) -> dict[str, Raw]:
    if bytes(message.get("role", b"")) not in _SYSTEM or "content" not in message:
        return message
    return message | {"content": _content(message["content"], join)}


def _content(content: Raw, join: _Join) -> Raw:
    """A text, or the texts of a list as one; parts with marks for a cache stay parts, each with a steady text."""
    given = bytes(content)
    if given.startswith(b'"'):
        text = decode(_text, given)
        return content if (now := _steady(text)) == text else Raw(msgspec.json.encode(now))
    if not given.startswith(b"["):
        return content
    parts = [decode(_object, bytes(part)) for part in decode(_objects, given)]
    if not all(bytes(part.get("type", b"")) == b'"text"' for part in parts):
        return content
    texts = [decode(_text, bytes(part["text"])) for part in parts]
    if all(part.keys() == {"type", "text"} for part in parts):
        return Raw(msgspec.json.encode(_steady(join(texts))))
    if all(_steady(text) == text for text in texts):
        return content
    steadily = ((part, _steady(text)) for part, text in zip(parts, texts, strict=True))
    return Raw(msgspec.json.encode([part | {"text": text} for part, text in steadily if text] or ""))


# Fitting: a client's request whose conversation is compacted to a context; the rest stays as it was written. Pure.

_STEP = 1.25
"""How the rate of an estimate rises: in steps, as a rate that follows each prompt would compact each one anew."""

_THRESHOLD = 0.95
"""The part of the budget from which on it is compacted: late, as nothing comes between the estimate and the request."""


class Fitted(Struct, frozen=True):
    """The shorter request, and how many of its client's messages were left out or shortened."""

    request: ServerRequest
    cut: int


def fitted(request: ServerRequest, setup: Setup, tokens: int, *, same: bool, rate: float | None = None) -> Fitted:
    """The request for a context of so many tokens, reply included; as it is where it fits, or cannot be made to.

    `same`: its body goes to a backend of its protocol, so its messages are written there. `rate` are tokens for a
    character; by default the server's own tokenizer's, as it was measured once: a rate that is learned from replies
    would give the same history another beginning in the next turn.
    """
    history = request.history
    match compacted_conversation(history, _budget(request, setup, tokens, rate)):
        case CompactedConversation(compactions=0):
            return Fitted(request, 0)
        case CompactedConversation(kept=kept) as shorter:
            left = sum(each.at >= 0 and each.message is history[each.at] for each in kept)
            body = _body(request, kept, setup) if same else request.body
            made = replace(request, body=body, history=shorter.history) if body else request
            return Fitted(made, len(history) - left if body else 0)
        case _:
            return Fitted(request, 0)


def refitted(
    given: ServerRequest, sent: ServerRequest, setup: Setup, overflow: Overflow, limit: int, *, same: bool
) -> Fitted | None:
    """The client's request compacted anew after what was sent overflowed; None where that makes it no shorter.

    `limit` is a maximum of its own, 0: none. The server's count corrects forge's estimate; a lower bound can only
    raise it.
    """
    known = tuple(filter(None, (overflow.maximum or setup.context_tokens, limit)))
    if not known:
        return None
    budget = _budget(sent, setup, max(known), None)
    rate = budget.meter.tokens_per_character
    characters = budget.meter.overhead + budget.count(sent.history)
    while rate < 1 and characters * rate < overflow.tokens:
        rate *= _STEP
    while 0 < overflow.tokens < characters * rate / _STEP and not overflow.at_least:
        rate /= _STEP
    made = fitted(given, setup, min(known), same=same, rate=rate)
    return made if made.cut and made.request.history != sent.history else None


def fits(request: ServerRequest, setup: Setup, tokens: int) -> bool:
    """Whether request and reply fit into so many tokens, by forge's estimate."""
    budget = _budget(request, setup, tokens, None)
    return estimate(request.history, budget) <= budget.tokens


def _budget(request: ServerRequest, setup: Setup, tokens: int, rate: float | None) -> ContextBudget:
    """What the conversation may take beside the tools and a reply, which has a quarter of the context at most."""
    wanted = request.sampling.max_tokens
    reply = min(DEFAULT_MAX_TOKENS if wanted is UNSET else wanted, tokens // 4)
    beside = overhead(
        Rules(tools=request.specs), Target(mode=setup.mode, wire=wire(setup.dialect), form=FORMS[setup.form])
    )
    rate = rate or setup.tokens_per_character or STARTING_RATE
    meter = Meter(overhead=beside, tokens_per_character=rate)
    return ContextBudget(tokens=max(1, tokens - reply), threshold=_THRESHOLD, meter=meter)


def _body(request: ServerRequest, kept: tuple[Placed, ...], setup: Setup) -> bytes:
    """The client's body with these messages, in its own words as far as they are its own; empty: they would be lost."""
    spoken, sent = wire(setup.dialect), as_sent(request)
    history = tuple(each.message for each in kept)
    foreign = any(each.fate != "dropped" for each in request.foreign)
    if request.protocol == "chat" and (foreign or not setup.alternating):
        return replace(sent, messages=tuple(_as_sent(kept, request, sent.messages, setup))).body
    if foreign:
        return b""
    if request.protocol == "chat":
        return replace(sent, messages=spoken.messages(alternating_history(history))).body
    return replace(sent, messages=spoken.messages(_after_system(request, history))).body


def _as_sent(
    kept: tuple[Placed, ...], request: ServerRequest, messages: tuple[Raw, ...], setup: Setup
) -> Iterator[Raw]:
    """The client's own messages, each as it came; of a result that was cut, only the text is another."""
    for each in kept:
        if each.at < 0:
            yield from wire(setup.dialect).messages((each.message,))
        elif each.message is request.history[each.at] or not isinstance(each.message, Tool):
            yield messages[each.at]
        else:
            text = Raw(msgspec.json.encode(each.message.text))
            yield Raw(msgspec.json.encode(decode(_object, bytes(messages[each.at])) | {"content": text}))


def _after_system(request: ServerRequest, history: History) -> History:
    """The messages beside the field `system`; later ones of the system are said by the user."""
    held = "system" in fields(request) and bool(history) and isinstance(history[0], System)
    return tuple(User(text=m.text) if isinstance(m, System) else m for m in history[held:])


# Growing context: the size that is asked for of a server which gives as much as it is asked for, as Ollama does.


class GrowingContext:
    """Asks for enough context for each request, in doublings, up to a limit, and never less than before.

    Ollama loads the model anew for another size, so it grows seldom and does not shrink.
    """

    def __init__(self, tokens: int, limit: int) -> None:
        self.tokens, self.limit = tokens, limit

    def setup_for(self, setup: Setup, request: ServerRequest) -> Setup:
        """The setup that asks for enough."""
        while self.tokens < self.limit and not fits(request, setup, self.tokens):
            self.tokens = min(self.limit, 2 * self.tokens)
        dialect = replace(setup.dialect, context_tokens=self.tokens)
        return replace(setup, context_tokens=self.tokens, dialect=dialect)


# Offers: the tools that a model is offered, where they are not just its client's: some hidden, one to answer with.

RESPOND = OfferedTool(spec=respond_tool().spec)
"""A tool to answer in words with: small models choose better among tools than between a call and a text."""


class _Tool(Struct):
    """A tool of Anthropic's API."""

    name: str | None = None


class _Message(Struct):
    message: str


_tool, _chat_tool = msgspec.json.Decoder(_Tool), msgspec.json.Decoder(SentTool)
_message = msgspec.json.Decoder(_Message)


def _without_hidden(request: ServerRequest, patterns: tuple[str, ...], *, same: bool) -> ServerRequest | RequestError:
    """The request without the tools that are hidden from the model. RequestError where its client demands one."""
    hidden = {tool.spec.name for tool in request.tools if any(matches(pattern, tool.spec.name) for pattern in patterns)}
    if not hidden:
        return request
    tools = tuple(tool for tool in request.tools if tool.spec.name not in hidden)
    wanted = [name for name in request.choice.tools if name in hidden]
    if wanted or (request.choice.mode == "required" and not tools):
        told = f"{wanted[0]!r} is" if wanted else "all tools are"
        said = f"tool_choice: {told} hidden from this model by the policy of this server"
        return RequestError(message=said, param="tool_choice")
    left = replace(request, tools=tools)
    if not same:
        return left
    raws = [raw for raw in decode(_objects, bytes(fields(request)["tools"])) if _name(raw, request) not in hidden]
    gone = {} if raws else {"tools": None, "tool_choice": None, "parallel_tool_calls": None}
    return with_fields(left, gone or {"tools": raws})


def _name(raw: Raw, request: ServerRequest) -> str | None:
    """The name under which the model knows the tool."""
    if request.protocol != "chat":
        return decode(_tool, bytes(raw)).name
    tool = decode(_chat_tool, bytes(raw))
    known = tool.function or tool.custom
    return known.name if known else None


def _takes_respond(request: ServerRequest) -> bool:
    """Whether the model may be offered a tool to answer with: it has tools, and its client leaves it the choice."""
    free = request.choice.mode == "auto" and not request.choice.tools and request.format is None
    return bool(request.tools) and free and all(tool.spec.name != RESPOND.spec.name for tool in request.tools)


def _with_respond(request: ServerRequest, spoken: Wire, *, same: bool) -> ServerRequest:
    """The request with that tool."""
    offered = replace(request, tools=(*request.tools, RESPOND))
    if not same:
        return offered
    raws = decode(_objects, bytes(fields(request)["tools"])) + decode(_objects, bytes(spoken.tools((RESPOND.spec,))))
    return with_fields(offered, {"tools": raws})


def in_plain_words(reply: Reply) -> Reply:
    """The reply as its client may see it: a call of that tool is the text, or nothing beside other calls."""
    calls = tuple(call for call in reply.calls if call.name != RESPOND.spec.name)
    if len(calls) == len(reply.calls):
        return reply
    if calls:
        return replace(reply, calls=calls)
    told = [reply.text.strip(), *map(_said, reply.calls)]
    finish = "stop" if reply.finish == "tool_calls" else reply.finish
    return replace(reply, text="\n\n".join(filter(None, told)), calls=(), finish=finish)


def _said(call: RawCall) -> str:
    try:
        return decode(_message, call.arguments).message
    except msgspec.DecodeError:
        return ""


# Shaping: what a policy says of the requests to a model, beside the rules for its calls.

OVERFLOW = {"chat": "compact", "responses": "refuse", "messages": "refuse"}
"""What is done about a prompt that is too long where the policy does not say it, by the client's protocol.

Codex and Claude Code compact by the error, better than forge could; clients of chat completions mostly give up.
"""


class Shaping(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How requests are shaped. What is not written leaves a request as it came.

    `context_tokens`: the conversation is compacted to a context of so many tokens, reply included. `overflow`: whether
    a prompt that the backend finds too long is compacted and sent once more, or refused.
    `hide_tools`: tools that the model is not offered, with `*` for anything. `respond`: it is offered one more, to
    answer with, whose calls its client gets as text.
    `sampling`: options that the model's makers recommend. `thinking`: whether it is asked to reason first. Both only
    where the client says nothing of it. Reasoning may be dropped from the history, and stripped from replies.
    `volatile`: lines of system messages that are new in each request are made the same in all.
    """

    context_tokens: Annotated[int, Meta(ge=512)] | None = None
    overflow: Literal["compact", "refuse"] | None = None
    hide_tools: str | tuple[str, ...] = ()
    respond: bool = False
    sampling: Literal["recommended"] | None = None
    thinking: Literal["on", "off"] | None = None
    reasoning_in_history: Literal["pass", "drop"] = "pass"
    reasoning_in_replies: Literal["pass", "strip"] = "pass"
    volatile: Literal["keep", "normalise"] = "keep"

    def compacts_overflow(self, request: ServerRequest) -> bool:
        """Whether a prompt that is too long is compacted and sent once more."""
        return (self.overflow or OVERFLOW[request.protocol]) == "compact"


# Shaper: what is made of a client's request before a backend sees it, by the policy for its model. Pure.


class Shaped(Struct, frozen=True, kw_only=True):
    """The request for the backend. `whole` is the same before `cut` of its messages were left out or shortened.

    `responds`: the model was offered a tool to answer with, of which the client knows nothing.
    """

    request: ServerRequest
    whole: ServerRequest
    cut: int = 0
    responds: bool = False

    @property
    def compacted(self) -> str:
        """What was cut, in words; empty where nothing was."""
        return f"{self.cut} message{'s' * (self.cut > 1)}" if self.cut else ""


def shaped_request(
    request: ServerRequest, shaping: Shaping, setup: Setup, names: tuple[str, ...], *, same: bool
) -> Shaped | RequestError:
    """The request as the policy wants it; to the byte as it came where that asks for nothing.

    `same`: its body goes to a backend of its protocol. `names` are those that its model may have.
    """
    left = _without_hidden(request, _several(shaping.hide_tools), same=same) if shaping.hide_tools else request
    if isinstance(left, RequestError):
        return left
    if shaping.volatile == "normalise":
        left = _steadied(left, same=same)
    if shaping.reasoning_in_history == "drop":
        left = _without_earlier_reasoning(left, same=same)
    if shaping.thinking is not None:
        left = _with_thinking(left, shaping.thinking, wire(setup.dialect), same=same)
    if shaping.sampling is not None:
        if (options := _recommended(names)) is None:
            said = f"no sampling is recommended for {' or '.join(names)}: sampling in the policy of this server"
            return RequestError(message=said, retriable=False)
        left = _with_default_sampling(left, options, wire(setup.dialect), same=same)
    responds = shaping.respond and _takes_respond(left)
    whole = _with_respond(left, wire(setup.dialect), same=same) if responds else left
    if shaping.context_tokens is None:
        return Shaped(request=whole, whole=whole, responds=responds)
    fit = fitted(whole, setup, shaping.context_tokens, same=same)
    return Shaped(request=fit.request, whole=whole, cut=fit.cut, responds=responds)


def _recommended(names: tuple[str, ...]) -> Sampling | None:
    return next(filter(None, map(known_sampling, names)), None)


def _several(names: str | tuple[str, ...]) -> tuple[str, ...]:
    return (names,) if isinstance(names, str) else names


# A body with some fields changed, and the others as their client wrote them.


def with_fields(request: ServerRequest, changes: Mapping[str, object]) -> ServerRequest:
    """The request with these fields in its body; None takes one out. The blanks between fields are lost."""
    left = {name: raw for name, raw in fields(request).items() if changes.get(name, raw) is not None}
    added = {name: Raw(msgspec.json.encode(value)) for name, value in changes.items() if value is not None}
    return replace(request, body=msgspec.json.encode(left | added))
