"""The ASGI application: the API, with keys, scopes and rate limits checked, and the page."""

import asyncio
import hashlib
import logging
import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import get_args
from urllib.parse import parse_qs

import msgspec
from msgspec import Struct
from msgspec.structs import replace
from sqlalchemy.exc import InterfaceError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from starlette.routing import Match, Route

from forge._installation import VERSION
from forge.callbacks import Answer
from forge.door.access import Reach
from forge.door.asgi import AsgiSend, HttpRequest, Leaving, Outlet, Receive, Scope, attended, read_body
from forge.durable.runs import How, Run, Runs, Served, workflow_of
from forge.errors import ForgeError, RunError
from forge.journal.records import checked_lines
from forge.observation import Observed, Requested, Responded
from forge.serve import api
from forge.serve.following import Follower, Following, Followings, Sequence
from forge.serve.keys import ANYONE, KeyFile, Principal
from forge.serve.openapi import OPERATIONS, Operation, document
from forge.serve.options import ServeOptions
from forge.serve.problems import ProblemError, decoded_body, of_door, of_forge, problem_answer
from forge.serve.views import journal_view, run_view, workflow_view
from forge.telemetry.prometheus import CONTENT_TYPE, Metrics
from stages.effect import Approved, Rejected, Settled
from stages.wire.server.errors import RequestError, WireAnswer

_log = logging.getLogger("forge.serve")

_JSON, _PROBLEM = "application/json", "application/problem+json"

_PAGE = Path(__file__).parent / "page"

_KINDS = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
}

_SAFE = (
    (
        "content-security-policy",
        (
            "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
            "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; "
            "trusted-types 'none'"
        ),
    ),
    ("x-content-type-options", "nosniff"),
    ("referrer-policy", "no-referrer"),
)
"""Headers of every response: the page shows text written by models and tools."""

_STOPPING = "the server is stopping; try again in a moment"
_AWAY = "the database of runs does not answer"

_PLACE = re.compile(r"([0-9]{1,9})\.([0-9]{1,9})")
_IDEMPOTENCY_KEY = re.compile(r'"?[\x21\x23-\x7e ]{1,200}"?')

_start, _answer = msgspec.json.Decoder(api.StartRun), msgspec.json.Decoder[api.AnswerBody](api.AnswerBody)
_steer, _object = msgspec.json.Decoder(api.Steer), msgspec.json.Decoder(dict[str, msgspec.Raw])


class Incoming(Struct, frozen=True):
    """A request to an operation, with its caller, run and query."""

    asked: HttpRequest
    out: Outlet
    caller: Principal
    run: str
    query: Mapping[str, list[str]]

    def one(self, name: str) -> str:
        """A query parameter; empty if missing."""
        return self.query.get(name, [""])[-1]

    async def tell(self, what: object, status: int = 200, headers: tuple[tuple[str, str], ...] = ()) -> None:
        """Respond with JSON."""
        body = msgspec.json.encode(what)
        await self.out.answer(WireAnswer(status=status, body=body, headers=(("cache-control", "no-store"), *headers)))


_Handler = Callable[[Incoming], Awaitable[None]]


class Rates:
    """The rate limit: each caller has a token bucket that fills at `rate` a second and holds ten seconds' worth."""

    def __init__(self, rate: float) -> None:
        # At least ten: with a rate below 1 the bucket must still hold a whole request, and the page sends several at
        # once when it opens.
        self._rate, self._most = rate, max(10.0, 10 * rate)
        self._left: dict[str, tuple[float, float]] = {}

    def take(self, caller: str, now: float) -> float:
        """Take a token. Returns 0, or the seconds until there is one."""
        left, since = self._left.get(caller, (self._most, now))
        left = min(self._most, left + (now - since) * self._rate)
        if left < 1:
            self._left[caller] = (left, now)
            return (1 - left) / self._rate
        self._left[caller] = (left - 1, now)
        return 0.0


class App:
    """The application. While `draining`, readers are disconnected and no run is started."""

    def __init__(
        self,
        workflows: Mapping[str, Served],
        runs: Runs,
        followings: Followings,
        options: ServeOptions,
        metrics: Metrics,
    ) -> None:
        self._workflows, self._runs, self._followings, self._options = workflows, runs, followings, options
        self._keys = KeyFile(options.keys) if options.keys else None
        self._reach = Reach(
            host=options.host,
            keyed=self._keys is not None,
            origins=options.origins,
            methods="GET, POST, DELETE, OPTIONS",
            headers="authorization, content-type, idempotency-key, last-event-id",
            pages=True,
        )
        self._rates, self._prometheus, self._streams = Rates(options.rate), metrics, 0
        metrics.watch(metrics.streams, lambda: self._streams)
        self._document = document(VERSION)
        self._handlers: Mapping[str, _Handler] = {
            "startRun": self._start_run,
            "listRuns": self._list_runs,
            "getRun": self._get_run,
            "readEvents": self._read_events,
            "exportJournal": self._export_journal,
            "answerRun": self._answer_run,
            "cancelRun": self._cancel_run,
            "retryRun": self._retry_run,
            "steerRun": self._steer_run,
            "deleteRun": self._delete_run,
            "listWorkflows": self._list_workflows,
            "live": self._live,
            "ready": self._ready,
            "metrics": self._metrics,
            "openapi": self._openapi,
        }
        self._routes = [
            (operation, Route(operation.path, endpoint=self, methods=[operation.method])) for operation in OPERATIONS
        ]

    @property
    def draining(self) -> bool:
        """Whether the server is stopping."""
        return self._followings.closing.is_set()

    async def __call__(self, scope: Scope, receive: Receive, send: AsgiSend) -> None:
        """Serve one request."""
        asked = HttpRequest.of(scope)
        out = Outlet(send, (*_SAFE, *self._reach.cors(asked)))
        found, run = self._found(asked, scope)

        async def handle(leaving: Leaving) -> None:
            try:
                await self._handled((found, run), asked, receive, out, leaving)
            except ProblemError as error:
                await out.answer(problem_answer(error.problem, error.headers), _PROBLEM)
            except ForgeError as error:
                if out.begun:
                    raise
                await out.answer(problem_answer(of_forge(error, run)), _PROBLEM)
            except (OperationalError, InterfaceError, PoolTimeout) as error:
                if out.begun:
                    raise
                _log.warning("cannot query the database of runs: %s", str(error).partition("\n")[0])
                away = ProblemError("unavailable", _AWAY, run=run, retry_after=5)
                await out.answer(problem_answer(away.problem, away.headers), _PROBLEM)

        try:
            await attended(asked, handle, receive, out, fail=lambda error: problem_answer(of_door(error)), log=_log)
        finally:
            where = found.path if isinstance(found, Operation) else "other"
            self._prometheus.requests.labels(where, str(out.status)).inc()
            shown = ascii(asked.path[:200])[1:-1]
            _log.info("%s %s %d %.0f ms", asked.method, shown, out.status, out.seconds * 1000)

    async def _handled(
        self,
        found: tuple[Operation | ProblemError, str],
        asked: HttpRequest,
        receive: Receive,
        out: Outlet,
        leaving: Leaving,
    ) -> None:
        if refused := self._reach.objection(asked):
            raise ProblemError("forbidden", refused.message)
        if asked.method == "OPTIONS":
            await out.answer(WireAnswer(status=204, body=b""))
            return
        if asked.path == "/" or asked.path.startswith("/page/"):
            await self._page(asked, out)
            return
        operation, run = found
        if isinstance(operation, ProblemError):
            raise operation
        caller = self._caller(asked, operation)
        body = await read_body(asked, receive, self._options.body_limit)
        if isinstance(body, RequestError):
            raise ProblemError("too-large", body.message)
        if operation.body is not None and not _is_json(asked.header("content-type")):
            raise ProblemError("wrong-media-type", "send the body as application/json", field="Content-Type")
        try:
            query = parse_qs(asked.query.decode("latin-1"), keep_blank_values=True, max_num_fields=50)
        except ValueError:
            raise ProblemError("wrong-field", "the query string has more than 50 fields") from None
        if b"%00" in asked.query:  # no database can store it
            raise ProblemError("wrong-field", "the query string has a NUL character")
        leaving.begin()
        incoming = Incoming(replace(asked, body=body), out, caller, run, query)
        if operation.method == "GET":
            await self._handlers[operation.id](incoming)
            return
        with Observed(Requested(method=operation.method, route=operation.path, headers=asked.headers)) as observed:
            await self._handlers[operation.id](incoming)
            observed.outcome = Responded(status=out.status)

    def _found(self, asked: HttpRequest, scope: Scope) -> tuple[Operation | ProblemError, str]:
        """The operation that the request is for, and its run."""
        allowed: list[str] = []
        for operation, route in self._routes:
            match, found = route.matches({**scope, "method": "GET" if asked.method == "HEAD" else asked.method})
            if match is Match.FULL:
                return operation, str(found["path_params"].get("run", ""))
            if match is Match.PARTIAL:
                allowed.append(operation.method)
        if not allowed:
            detail = f"no such path: {asked.path[:200]}; see /openapi.json"
            return ProblemError("not-found", detail), ""
        refused = ProblemError("method-not-allowed", f"{asked.path[:200]} allows {', '.join(allowed)}")
        refused.headers = (("allow", ", ".join(allowed)),)
        return refused, ""

    def _caller(self, asked: HttpRequest, operation: Operation) -> Principal:
        """The caller. ProblemError if it may not make this request, or makes too many."""
        if operation.scope is None:
            return ANYONE
        caller = self._known(asked)
        if not caller.may(operation.scope):
            raise ProblemError("forbidden", f"this key lacks the scope {operation.scope!r}")
        if wait := self._rates.take(caller.owner, time.monotonic()):
            raise ProblemError(
                "too-many", f"more than {self._options.rate:g} requests per second", retry_after=max(1, round(wait))
            )
        return caller

    def _known(self, asked: HttpRequest) -> Principal:
        if self._keys is None:
            return ANYONE
        scheme, _, key = asked.header("authorization").partition(" ")
        try:
            found = self._keys.caller(key.strip()) if scheme.lower() == "bearer" and key.strip() else None
        except ForgeError as error:
            _log.error("%s", error)
            raise ProblemError("unavailable", "the key file cannot be read; see the log of forge serve") from None
        if found is None:
            what = "this key is not, or no longer, known here" if asked.header("authorization") else "key required"
            refused = ProblemError("unauthorized", f"{what}: Authorization: Bearer KEY", field="Authorization")
            refused.headers = (("www-authenticate", "Bearer"),)
            raise refused
        return found

    # Runs

    async def _start_run(self, asks: Incoming) -> None:
        if self.draining:
            raise ProblemError("unavailable", _STOPPING, retry_after=2)
        wanted = decoded_body(_start, asks.asked.body)
        workflow = self._workflows.get(wanted.workflow)
        if workflow is None:
            known = ", ".join(self._workflows)
            detail = f"unknown workflow {wanted.workflow[:100]!r}; available: {known}"
            raise ProblemError("unknown-workflow", detail, field="workflow")
        if not wanted.message.strip():
            raise ProblemError("wrong-field", "the message is empty", field="message")
        started = await self._runs.start(
            workflow,
            wanted.message,
            prompt_vars=wanted.variables,
            id=_idempotent(asks),
            conversation=wanted.conversation,
            priority=wanted.priority,
            owner=asks.caller.owner,
        )
        run = await self._runs.get(started)
        where = (("location", f"/v1/runs/{run.id}"),)
        if wanted.stream:
            await self._stream(asks, run, None, where)
        elif wanted.background:
            await asks.tell(run_view(run), 202, where)
        else:
            settled = await self._settled(run)
            await asks.tell(run_view(settled), 200 if settled.over or settled.question else 202, where)

    async def _settled(self, run: Run) -> Run:
        """The run, once it has ended or waits for a person; as it is now, if the server stops first."""
        async with self._followed(run) as followed:
            while not (followed.over or followed.run.question or self.draining):
                await self._more(followed.changed)
            _refuse_broken(followed)
            return followed.run

    async def _list_runs(self, asks: Incoming) -> None:
        states = [state for state in get_args(How) if state in asks.query.get("state", [])]
        if strange := [one for one in asks.query.get("state", []) if one not in get_args(How)]:
            known = ", ".join(get_args(How))
            raise ProblemError("wrong-field", f"unknown state {strange[0][:50]!r}; use one of {known}", field="state")
        limit = asks.one("limit") or "50"
        if not re.fullmatch("[0-9]{1,3}", limit) or not 1 <= int(limit) <= api.PAGE_LIMIT:
            raise ProblemError("wrong-field", f"limit must be a number from 1 to {api.PAGE_LIMIT}", field="limit")
        page = await self._runs.list(
            cursor=asks.one("cursor"),
            most=int(limit),
            states=states,
            workflow=asks.one("workflow") or None,
            conversation=asks.one("conversation") or None,
            owner=None if asks.caller.may("admin") else asks.caller.owner,
        )
        await asks.tell(replace(page, runs=tuple(map(run_view, page.runs))))

    async def _own(self, asks: Incoming) -> Run:
        """The requested run. RunError if it does not exist or belongs to another owner."""
        run = await self._runs.get(asks.run)
        if not asks.caller.sees(run.owner):
            raise RunError(f"there is no run {asks.run[:120]!r}", "unknown")
        return run

    async def _get_run(self, asks: Incoming) -> None:
        await asks.tell(run_view(await self._own(asks)))

    async def _export_journal(self, asks: Incoming) -> None:
        run = await self._own(asks)
        body = b"".join(checked_lines(journal_view(await self._runs.journal(run.id))))
        named = (("content-disposition", f'attachment; filename="{run.id}.jsonl"'),)
        await asks.out.answer(WireAnswer(body=body, headers=named), "application/jsonl")

    async def _answer_run(self, asks: Incoming) -> None:
        run = await self._own(asks)
        said = decoded_body(_answer, asks.asked.body)
        if isinstance(said, api.InputAnswer):
            await self._input(asks, run, said)
            return
        if isinstance(said, api.SettleAnswer) and run.question is not None and run.question.in_doubt is None:
            raise ProblemError(
                "wrong-field", "there is no unknown outcome to settle; approve or reject", field="type", run=run.id
            )
        await self._runs.answer(run.id, _outcome(said))
        await asks.tell(run_view(await self._runs.get(run.id)), 202)

    async def _input(self, asks: Incoming, run: Run, said: api.InputAnswer) -> None:
        if not run.over:
            detail = f"the run {run.id} has not ended; post messages to /v1/runs/{run.id}/messages"
            raise ProblemError("not-asked", detail, field="type", run=run.id)
        if not said.text.strip():
            raise ProblemError("wrong-field", "the text is empty", field="text", run=run.id)
        try:
            following = await self._runs.follow(run.id, self._served_of(run), said.text)
        except RunError as error:
            if error.kind != "reused-id":
                raise
            detail = f"the run {run.id} already has another following message"
            raise ProblemError("not-asked", detail, field="text", run=run.id) from None
        where = (("location", f"/v1/runs/{following}"),)
        await asks.tell(run_view(await self._runs.get(following)), 201, where)

    def _served_of(self, run: Run) -> Served:
        served = self._workflows.get(run.workflow)
        if served is None:
            detail = f"the run {run.id} is of the workflow {run.workflow!r}, which this server does not have"
            raise ProblemError("unknown-workflow", detail, run=run.id)
        return served

    async def _cancel_run(self, asks: Incoming) -> None:
        run = await self._own(asks)
        await self._runs.cancel(run.id)
        await asks.tell(run_view(await self._runs.get(run.id)), 202)

    async def _retry_run(self, asks: Incoming) -> None:
        run = await self._own(asks)
        await self._runs.retry(run.id)
        await asks.tell(run_view(await self._runs.get(run.id)), 202)

    async def _steer_run(self, asks: Incoming) -> None:
        run = await self._own(asks)
        said = decoded_body(_steer, asks.asked.body)
        if not said.text.strip():
            raise ProblemError("wrong-field", "the text is empty", field="text", run=run.id)
        await asks.tell(api.Steering(unread=await self._runs.say(run.id, said.text)), 202)

    async def _delete_run(self, asks: Incoming) -> None:
        run = await self._own(asks)
        await self._runs.delete(run.id)
        await asks.out.answer(WireAnswer(status=204, body=b""))

    # Events

    async def _read_events(self, asks: Incoming) -> None:
        run = await self._own(asks)
        said = asks.asked.header("last-event-id") or asks.one("after")
        found = _PLACE.fullmatch(said)
        if said and not found:
            raise ProblemError("wrong-field", f"invalid event id {said[:50]!r}", field="Last-Event-ID", run=run.id)
        await self._stream(asks, run, (int(found[1]), int(found[2])) if found else None)

    async def _stream(
        self, asks: Incoming, run: Run, after: Sequence | None, headers: tuple[tuple[str, str], ...] = ()
    ) -> None:
        out = asks.out
        async with self._followed(run) as followed:
            reading = Follower(followed, after)
            # A browser reconnects whenever a stream ends. For one that has everything, the answer is 204 and no stream.
            if after is not None and run.over:
                while not (followed.over or self.draining):
                    await self._more(followed.changed)
                _refuse_broken(followed)
                if not followed.over:
                    raise ProblemError("unavailable", _STOPPING, run=run.id, retry_after=2)
                if not reading.news:
                    await out.answer(WireAnswer(status=204, body=b""))  # tells a browser not to reconnect
                    return
            await out.stream(headers)
            while True:
                changed = followed.changed
                await out.write(reading.take())
                if reading.done or self.draining:
                    break
                if reading.more:
                    continue
                await self._more(changed)
                if time.monotonic() - out.written >= self._options.keep_alive:
                    await out.write(b": still here\n\n")
            await out.end()

    async def _more(self, changed: asyncio.Event) -> None:
        """Wait for more events, for the server to stop, or for `keep_alive` seconds."""
        waiting = [asyncio.ensure_future(one.wait()) for one in (changed, self._followings.closing)]
        try:
            await asyncio.wait(waiting, timeout=self._options.keep_alive, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for one in waiting:
                one.cancel()

    @asynccontextmanager
    async def _followed(self, run: Run) -> AsyncIterator[Following]:
        """Follow the run. ProblemError if too many streams are open, or its workflow is not served here."""
        if self._streams >= self._options.streams:
            detail = f"all {self._options.streams} streams are in use"
            raise ProblemError("too-many", detail, run=run.id, retry_after=5)
        self._streams += 1
        try:
            async with self._followings.of(run, workflow_of(self._served_of(run))) as followed:
                yield followed
        finally:
            self._streams -= 1

    # The rest

    async def _list_workflows(self, asks: Incoming) -> None:
        await asks.tell(api.WorkflowList(workflows=tuple(map(workflow_view, self._workflows.values()))))

    async def _live(self, asks: Incoming) -> None:
        await asks.tell(api.Health(status="ok"))

    async def _ready(self, asks: Incoming) -> None:
        health = api.Health(status="draining") if self.draining else api.Health(status="ok")
        if not self.draining:
            try:
                async with asyncio.timeout(5):
                    await self._runs.heads([])
            except Exception as error:  # noqa: BLE001 - any database error means not ready
                _log.warning("cannot query the database of runs: %s", str(error).partition("\n")[0])
                health = api.Health(status="unavailable", problem=_AWAY)
        await asks.tell(health, 200 if health.status == "ok" else 503)

    async def _metrics(self, asks: Incoming) -> None:
        waits = await self._runs.waiting()
        for state, number in waits.items():
            self._prometheus.runs.labels(state).set(number)
        self._prometheus.queue_depth.set(waits["queued"])
        await asks.out.answer(WireAnswer(body=self._prometheus.text()), CONTENT_TYPE)

    async def _openapi(self, asks: Incoming) -> None:
        await asks.out.answer(WireAnswer(body=self._document))

    async def _page(self, asked: HttpRequest, out: Outlet) -> None:
        name = asked.path.removeprefix("/page/") if asked.path != "/" else "index.html"
        kind = _KINDS.get(Path(name).suffix)
        if asked.method not in {"GET", "HEAD"}:
            raise ProblemError("method-not-allowed", "the page allows GET and HEAD")
        body: bytes | None = None
        if kind is not None and re.fullmatch(r"[A-Za-z0-9_-][A-Za-z0-9_.-]*", name):
            with suppress(OSError):
                body = (_PAGE / name).read_bytes()
        if body is None or kind is None:
            raise ProblemError("not-found", f"no such path: {asked.path[:200]}")
        await out.answer(WireAnswer(body=body, headers=(("cache-control", "no-cache"),)), kind)


def _refuse_broken(followed: Following) -> None:
    """Raise an error if the run cannot be followed any further."""
    if isinstance(followed.problem, ForgeError):
        raise followed.problem
    if followed.problem is not None:
        detail = f"the run {followed.id} cannot be read; see the log of forge serve"
        raise ProblemError("internal", detail, run=followed.id)


def _is_json(kind: str) -> bool:
    name = kind.partition(";")[0].strip().lower()
    return not name or name == _JSON or name.endswith("+json")


def _idempotent(asks: Incoming) -> str | None:
    """The run id derived from the caller and the Idempotency-Key."""
    if b"idempotency-key" not in asks.asked.headers:
        return None
    key = asks.asked.header("idempotency-key")
    if not _IDEMPOTENCY_KEY.fullmatch(key):
        raise ProblemError("wrong-field", "use 1 to 200 ASCII characters in quotes", field="Idempotency-Key")
    plain = key.removeprefix('"').removesuffix('"')
    return hashlib.sha256(f"{asks.caller.owner}\0{plain}".encode()).hexdigest()[:32]


def _outcome(said: api.ApproveAnswer | api.EditAnswer | api.RejectAnswer | api.SettleAnswer) -> Answer:
    match said:
        case api.ApproveAnswer(digest=digest):
            return Approved(digest=digest)
        case api.EditAnswer(digest=digest, arguments=arguments):
            try:
                decoded_body(_object, arguments.encode())
            except ProblemError as error:
                detail = f"arguments must be a JSON object, as text: {error}"
                raise ProblemError("wrong-field", detail, field="arguments") from None
            return Approved(digest=digest, edited=arguments)
        case api.RejectAnswer(digest=digest, reason=reason):
            return Rejected(digest=digest, reason=reason or "a person said no")
        case api.SettleAnswer(digest=digest, happened=happened, result=result):
            return Settled(digest=digest, happened=happened, result=result)
