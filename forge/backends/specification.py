"""The backend for a specification such as `local`, `127.0.0.1:8080`, `ollama:qwen3` or `llamafile:FILE`."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Unpack

from forge.backends.address import is_address
from forge.backends.profile import names
from forge.backends.server import Server, ServerOptions
from forge.connection import TIMEOUT, Backend
from forge.errors import ForgeError
from stages.options import nearest

if TYPE_CHECKING:
    from forge.backends.servers.download import Watch
    from forge.backends.servers.process import Tell


def named(
    spec: str,
    model: str = "",
    *,
    profile: str | None = None,
    progress: "Tell | None" = None,
    download: "Watch | None" = None,
    **options: Unpack[ServerOptions],
) -> Backend:
    """The backend with that name.

    `local` is llama.cpp in this process; an address (such as `127.0.0.1:8080`) is the server there; `NAME:ADDRESS` also
    says its kind; `NAME:MODEL` and `NAME` are that backend at its default address. `llama-server:MODEL` and
    `llamafile:MODEL`, with a file, a known model or `org/repo:quant`, start a server for as long as it is needed.
    `profile` is a profile's name or file, for an address. `download` watches a download, `progress` a started server
    that is loading. ForgeError, with the possibilities, for any other name.
    """
    if spec == "local":
        known = {"mode", "sampling", "model_sampling", "context_tokens", "api_key", "timeout", "probe"}
        given = {**options, "profile": profile}
        _refuse_others("local", known, given, "they are for a server, whose address is then given")
        from forge.backends.servers.server_manager import Local  # noqa: PLC0415 - slower to import than all of this

        return Local(model, progress=download, **options)
    if is_address(spec):
        return Server(spec, profile=profile, model=model, **options)
    from forge.backends.servers.launch import launch_of  # noqa: PLC0415 - reads the list of models, no use to an address

    if not profile and (launch := launch_of(spec, model, context_tokens=options.get("context_tokens"))):
        from forge.backends.servers.server_manager import ServerManager  # noqa: PLC0415 - as above

        options["context_tokens"] = None  # the launch has it
        return ServerManager(launch, progress=progress, download=download, **options)
    name, colon, rest = spec.partition(":")
    if name in names() and not profile:
        if is_address(rest):
            return Server(rest, profile=name, model=model, **options)
        if name == "anthropic":
            if options.get("mode", "auto") not in {"auto", "native"}:
                raise ForgeError("anthropic has the mode native alone; for another, give the address and the profile")
            from forge.backends.anthropic import Anthropic  # noqa: PLC0415 - no use to any other name

            known = {"api_key", "sampling", "context_tokens", "timeout", "retry", "mode", "probe"}
            _refuse_others("anthropic", known, options, "for those, give the address and the profile")
            return Anthropic(  # through the official SDK
                rest or model,
                api_key=options.get("api_key", ""),
                sampling=options.get("sampling"),
                context_tokens=options.get("context_tokens"),
                timeout=options.get("timeout", TIMEOUT),
                retry=options.get("retry"),
            )
        return Server(profile=name, model=rest or model, **options)
    possible = ", ".join(names())
    near = nearest(name, ("local", *names()))
    meant = f" Did you mean {near}{colon}{rest}?" if near else ""
    raise ForgeError(
        f"there is no backend {spec!r}; write local (llama.cpp in this process), a server's address, such as "
        f"http://127.0.0.1:8080, NAME:MODEL or NAME:ADDRESS with one of these names: {possible}; or have one started, "
        f"as in llama-server:FILE.gguf.{meant}"
    )


def _refuse_others(what: str, known: set[str], options: Mapping[str, object], instead: str) -> None:
    if foreign := sorted(name for name, value in options.items() if value and name not in known):
        raise ForgeError(f"{what} has no {', '.join(foreign)}; {instead}")
