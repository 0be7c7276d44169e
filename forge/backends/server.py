"""A server at an address: examined, then connected to."""

import logging
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TypedDict, Unpack

import httpx
from msgspec.structs import replace

from forge.backends.credentials import HEADERS, headers_for, keys, secrets
from forge.backends.endpoints import AnthropicModel
from forge.backends.http_client import Verify, direct, forward_proxy, new_client, sender, trust
from forge.backends.profile import (
    DEFAULT_CONTEXT,
    Profile,
    base_url,
    check_sampling,
    given_profile,
    low_temperature,
    named_profile,
    recommended,
    usual,
)
from forge.backends.questions import Counting, Tokenizer, ask
from forge.backends.recognition import About, addressed, ask_about, context_of, kind_of
from forge.connection import TIMEOUT, Connection, Endpoint, ModeName, Setup
from forge.errors import BackendError, ForgeError, checked_options
from forge.interpreters.http import TOTAL
from stages.options import Seconds, Tokens
from stages.retry import RetryPolicy
from stages.wire.sampling import Sampling
from stages.wire.wires import WIRES, wire

_log = logging.getLogger("forge")


def _check_mode(mode: ModeName, profile: Profile) -> None:
    """ForgeError for a mode of tool calls that the backend lacks."""
    if mode == "native" and not profile.native_calls:
        raise ForgeError(f"the profile {profile.name} has no native calls; choose the mode prompted or constrained")
    if mode == "constrained" and profile.constrain == "none":
        raise ForgeError(f"the profile {profile.name} cannot constrain decoding; choose the mode native or prompted")


# A server over HTTP: its kind comes from the profile, its models and context from the server.


class ServerOptions(TypedDict, total=False):
    """Options of `Server` besides address and profile."""

    mode: ModeName
    api_key: str
    sampling: Sampling | None
    model_sampling: bool
    context_tokens: Tokens | None
    headers: Mapping[str, str] | None
    timeout: Seconds
    total_timeout: Seconds | None
    retry: RetryPolicy | None
    proxy: str | None
    verify: Verify
    transport: httpx.AsyncBaseTransport | None
    probe: bool


class Server:
    """A server at `url`; what is not given is asked of the server.

    `profile` is its kind: a name (`forge.backends.profile.names`), a TOML file, or a Profile. Without one, the server
    is recognised by its own endpoints as llama.cpp, vLLM or any other chat completions server. `mode` auto is the
    profile's; an unknown server is first probed with a few short questions, once a week, unless `probe` is False
    (docs/doctor.md).

    `model` defaults to the first that the server lists, `context_tokens` to what the server reports, otherwise the
    profile's, otherwise 4,096. `sampling` applies to every reply; with `model_sampling`, unset options are as the
    model's makers recommend (`forge.backends.profile`).

    `api_key`, or a header in `headers`, is the only credential; without one, the profile's environment variable is
    read, only for the profile's own address. `timeout`: maximum seconds without a byte from the server;
    `total_timeout`: maximum seconds per request, None for no limit. `proxy` and `verify` are httpx's (a client
    certificate goes into an ssl.SSLContext); a `transport` of httpx is used instead of both. ForgeError for
    contradictory options.
    """

    @checked_options
    def __init__(
        self,
        url: str = "",
        *,
        profile: Profile | Path | str | None = None,
        model: str = "",
        **options: Unpack[ServerOptions],
    ) -> None:
        self._base = base_url(url, given_profile(profile))
        self._profile = given_profile(profile) or addressed(self._base)
        if self._profile and not WIRES[self._profile.wire].lists_models and not model:
            name = self._profile.name
            raise ForgeError(f"{name} needs a model: give model=…, or on the command line {name}:MODEL")
        self._model = model
        self._options = options
        self._mode: ModeName = options.get("mode", "auto")
        if self._profile:
            _check_mode(self._mode, self._profile)
        # Without a profile there is no default address, so no key is read from the environment.
        known = self._profile or named_profile("openai-compatible")
        self._headers = headers_for(self._base, known, options.get("api_key", ""), options.get("headers") or {})
        self._hidden, self._keys = secrets(self._headers, known), keys(self._headers, known.key_header)
        self._sampling = options.get("sampling") or Sampling()
        check_sampling(self._sampling, known)
        self._timeout, self._total = options.get("timeout", TIMEOUT), options.get("total_timeout", TOTAL)
        self._proxy, self._verify = options.get("proxy"), options.get("verify", True)

    def __repr__(self) -> str:
        """The address and what is known of the server; never a key."""
        known = [f"profile={self._profile.name!r}"] if self._profile else []
        return f"Server({', '.join([repr(self._base), *known, *([f'model={self._model!r}'] if self._model else [])])})"

    @asynccontextmanager
    async def connect(self) -> AsyncIterator[Connection]:
        """Examine the server and connect. BackendError if nothing answers; ForgeError for what it cannot do."""
        straight = self._options.get("transport") or direct(self._base, proxy=self._proxy, verify=self._verify)
        async with new_client(
            self._base,
            headers=self._headers,
            timeout=self._timeout,
            proxy=self._proxy,
            verify=self._verify,
            transport=straight,
        ) as http:
            about, given = About(), self._profile
            if given is None or given.context == "props":
                about = await ask_about(http, self._base, props=True)
            elif WIRES[given.wire].lists_models and not (self._model and given.context == "given"):
                about = await ask_about(http, self._base, props=False)
            profile, because = await self._recognised(http, about)
            model = self._first(about)
            takes: Counting = "text" if isinstance(profile.tokenizer, bool) else profile.tokenizer
            tokenizer = Tokenizer(http, self._base.removesuffix("/v1"), model=model, takes=takes)
            whole = takes == "anthropic"  # it counts whole requests alone
            rate = await tokenizer.tokens_per_character() if profile.tokenizer and not whole else None
            context, most = await self._context(http, profile, about, model)
            setup = await self._setup(http, profile, about, context)
            setup = replace(setup, because=because, tokens_per_character=rate)
            _log.info(
                "%s is taken for %s: mode %s, %d tokens of context (%s)",
                self._base,
                profile.name,
                setup.mode,
                setup.context_tokens,
                because,
            )
            send = sender(
                http,
                self._root(profile),
                self._options.get("retry"),
                wire(setup.dialect),
                hidden=self._hidden,
                keys=self._keys,
                refusals=profile.refusals(setup.mode) if setup.falls_back else (),
                total=self._total,
                transport=straight,
                model=setup.model,
            )
            count = tokenizer.count if whole or rate is not None else None
            yield Connection(setup, send, stream=send, count=count, endpoint=self._endpoint(profile, about, most))

    async def _setup(self, http: httpx.AsyncClient, profile: Profile, about: About, context: int) -> Setup:
        """The setup from profile, server and user options. ForgeError if they contradict each other."""
        _check_mode(self._mode, profile)
        model = self._first(about)
        mode = profile.mode if self._mode == "auto" else self._mode
        if self._mode == "auto" and mode == "native" and about.template_has_tools is False:
            _log.warning(
                "the model's chat template has no tools, so the server would ignore them; the mode is prompted"
            )
            mode = "prompted"
        made = recommended(model) if self._options.get("model_sampling") else Sampling()
        shown = about.template
        markers, alternating = None, False
        if shown:
            # It brings the grammars of calls, and of most servers there is no template to read.
            from forge.backends.template import examined  # noqa: PLC0415

            template = await examined(http, self._base.removesuffix("/v1"), model, shown)
            markers, alternating = template.markers, template.alternating
        return Setup(
            mode=mode,
            falls_back=self._mode == "auto" and bool(profile.refusals(mode)),
            logprobs=profile.logprobs,
            model=model,
            context_tokens=context,
            # The user's options take precedence over the makers' (if wanted), and those over forge's own.
            sampling=self._sampling.over(made).over(usual(model, low_temperature(profile, self._base))),
            markers=markers,
            formats=profile.formats,
            alternating=alternating if profile.alternating is None else profile.alternating,
            dialect=wire(profile.dialect(context)).dialect,
        )

    def _endpoint(self, profile: Profile, about: About, most: int) -> Endpoint:
        """The endpoint for passed-through requests."""
        proxy = forward_proxy(self._base, self._proxy)
        return Endpoint(
            base=self._root(profile),
            root=self._base.removesuffix("/v1"),
            headers=self._headers,
            key_header=profile.key_header,
            has_key=any(name in HEADERS | {profile.key_header} for name in self._headers),
            model=self._model,
            instead=about.instead_of(self._model),
            slots=about.slots or 0,
            context_limit=most,
            hidden=self._hidden,
            timeout=self._timeout,
            total=self._total,
            profile=profile.name,
            native_calls=profile.native_calls,
            # If the user insists on native calls, report that there are none.
            tools_refused=() if self._mode == "native" else profile.tools_refused,
            proxy=proxy,
            tls=trust(self._base, proxy, self._verify),
        )

    async def _recognised(self, http: httpx.AsyncClient, about: About) -> tuple[Profile, str]:
        """The server's profile, and how it was found; an unknown server is probed."""
        if self._profile is not None:
            return self._profile, "as given"
        kind, _ = kind_of(about)
        if kind != "openai-compatible":
            return named_profile(kind), "recognised"
        names = [each.id for each in about.models.data] if about.models else []
        if self._model and names and self._model not in names:
            # The refusal of the first request may not say so: MAX's is "Value error.", transformers serve's a bare 500.
            some = ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
            _log.warning("%s does not list the model %s; it lists %s", self._base, self._model, some)
        if self._mode != "auto" or not self._options.get("probe", True):
            return named_profile("openai-compatible"), "not asked"
        # Not needed for a known server.
        from forge.backends.doctor.examination import Subject, consulted  # noqa: PLC0415

        listed = about.listed()
        build = listed.owned_by if listed else ""
        return await consulted(http, self._base, Subject(url=self._base, model=self._first(about), build=build), about)

    def _first(self, about: About) -> str:
        """The model to use: the user's choice, otherwise the first that the server lists."""
        listed = about.listed()
        return self._model or (listed.id if listed else "")

    def _root(self, profile: Profile) -> str:
        """The base address for the profile's wire: without `/v1` if its paths start at the root."""
        return self._base.removesuffix("/v1") if WIRES[profile.wire].at_root else self._base

    async def _context(self, http: httpx.AsyncClient, profile: Profile, about: About, model: str) -> tuple[int, int]:
        """The context in tokens, from user, server or profile; and the maximum that may be requested, 0 for no more.

        ForgeError if the user wants more than the server has.
        """
        wished = self._options.get("context_tokens")
        default = wished or profile.context_tokens or DEFAULT_CONTEXT
        match profile.context:
            case "props" | "models":
                has = context_of(about, model).tokens or 0
            case "show":
                from forge.backends.ollama import context_to_ask_for  # noqa: PLC0415 - it knows all GPUs, too

                # Ollama allocates what is requested, up to the model's maximum.
                return await context_to_ask_for(http, self._root(profile), model, default, wished=wished)
            case "model":
                has = 0 if wished else await self._model_limit(http, model)
            case "given":
                has = 0
        if wished and 0 < has < wished:
            raise ForgeError(
                f"{wished} tokens of context are more than the server has: {has}. Leave context_tokens (--context) "
                "out, or start the server with a larger context"
            )
        return wished or has or default, 0

    async def _model_limit(self, http: httpx.AsyncClient, model: str) -> int:
        """The context that Anthropic's API reports of the model; 0 if it, or a compatible one, reports none."""
        answer = await ask(http, f"{self._base}/models/{model}")
        if answer.status in {httpx.codes.UNAUTHORIZED, httpx.codes.FORBIDDEN}:
            raise BackendError(f"{self._base} rejects this key (status {answer.status}); check it")
        found = answer.read(AnthropicModel)
        return (found.max_input_tokens if found else None) or 0
