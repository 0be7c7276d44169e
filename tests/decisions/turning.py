"""A turn of the proxy: what the backend is asked and what the client is answered, without either."""

from msgspec.structs import replace

from forge.connection import Connection, Setup
from forge.proxy.exchange import Again, exchange_of
from forge.proxy.judges import ReplyJudges
from forge.proxy.model import Model
from forge.proxy.policy_file import policy_from_toml
from forge.proxy.turn import TurnStep, judged
from forge.proxy.upstream import ConnectionUpstream, Forwarded, Post
from stages.effect import Replied, Send
from stages.wire.server.errors import RequestError
from stages.wire.server.streams import Envelope
from stages.wire.server_wires import CHAT, MESSAGES, RESPONSES, ServerWire
from stages.wire.wires import ANTHROPIC
from tests.decisions.records import Turn, digest

WIRES: dict[str, ServerWire] = {"chat": CHAT, "messages": MESSAGES, "responses": RESPONSES}


async def _nobody(_: Send) -> Replied:
    raise AssertionError("a turn asks nobody")


def model_of(kind: str, policy: str) -> Model:
    """A backend of this kind under this policy."""
    upstream = ConnectionUpstream(Connection(Setup(), _nobody))
    plain = Model(
        setup=Setup(model="m"),
        upstream=upstream,
        judges=ReplyJudges(max_retries=2, search_text=True),
        max_retries=2,
        verbatim="chat",
        policy=policy_from_toml(policy),
    )
    match kind:
        case "messages":
            return replace(plain, setup=Setup(model="m", dialect=ANTHROPIC.dialect), verbatim="messages")
        case "constrains":
            return replace(plain, constrains=True)
        case "prompted":
            return replace(plain, setup=Setup(model="m", mode="prompted"))
        case _:
            return plain


def turned(record: Turn) -> Turn:
    """The turn as it goes now."""
    wire, replies = WIRES[record.protocol], iter(record.replies)
    request = wire.decode_request(bytes(record.body))
    if isinstance(request, RequestError):
        return replace(record, asked=(), end=f"refused {digest(request.message.encode())}")
    envelope = Envelope(id="x", created=1, request=request)
    exchange = exchange_of(wire, envelope, model_of(record.kind, record.policy), Forwarded())
    if isinstance(exchange, RequestError):
        return replace(record, asked=(), end=f"refused {digest(exchange.message.encode())}")
    asked, step = [_digest(exchange.first)], exchange.asked
    reply = next(replies).reply()
    judgement: TurnStep | None = judged(exchange, step, reply) if step else None
    while isinstance(judgement, Again):
        asked.append(_digest(exchange.post(judgement)))
        reply = next(replies).reply()
        judgement = judged(exchange, judgement, reply)
    shown = judgement.reply if judgement else reply
    answer = wire.encode_reply(shown, exchange.envelope)
    end = f"{type(judgement).__name__ if judgement else 'unjudged'} {digest(answer)}"
    return replace(record, asked=tuple(asked), end=end)


def _digest(post: Post) -> str:
    return digest(post.body or post.request.body)
