"""A forward proxy and a company's own certificates on the way to a server, for `forge proxy` and for `forge`."""

import asyncio
import os
import sys
from pathlib import Path

import aiohttp
import pytest
import trustme

from forge.backends import Server
from forge.backends.http_client import forward_proxy
from forge.proxy import ProxyOptions, ProxyServer
from tests.forward_proxy import ForwardProxy, served, trusting
from tests.proxy.test_cli import ROOT, address
from tests.proxy.test_proxy import asked
from tests.scripted_model import ScriptedModel, completion, whole

NAMED = "https://models.example"
TUNNEL = "CONNECT models.example:443 HTTP/1.1"


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


async def posted(url: str) -> tuple[int, str]:
    async with aiohttp.ClientSession() as session, session.post(url + "/v1/chat/completions", json=asked()) as answer:
        return answer.status, await answer.text()


async def started(backend: str, **environment: str) -> asyncio.subprocess.Process:
    command = [sys.executable, "-m", "forge", "proxy", "--port", "0", "--backend", backend, "--model", "tiny"]
    kept = {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}
    return await asyncio.create_subprocess_exec(*command, cwd=ROOT, stdout=-1, stderr=-1, env=kept | environment)


async def test_the_environment_leads_there_and_says_whom_to_trust(authority: trustme.CA, tmp_path: Path) -> None:
    bundle = tmp_path / "company.pem"
    authority.cert_pem.write_to_path(str(bundle))
    async with (
        ScriptedModel(whole(completion("Hello.")), tls=served(authority, "models.example")) as model,
        ForwardProxy(model.port) as way,
    ):
        proxy = await started(NAMED, HTTPS_PROXY=way.url, SSL_CERT_FILE=str(bundle), NO_PROXY="other.example")
        status, body = await posted(await address(proxy))
        proxy.terminate()
        await proxy.communicate()
        assert (status, "Hello." in body) == (200, True)
        assert set(way.asked) == {TUNNEL}
        assert len(model.asked) == 1


async def test_what_is_given_in_python_goes_before_the_environment(authority: trustme.CA) -> None:
    async with (
        ScriptedModel(whole(completion("Hello.")), tls=served(authority, "models.example")) as model,
        ForwardProxy(model.port) as way,
        ProxyServer(
            Server(NAMED, model="tiny", proxy=way.url, verify=trusting(authority)), ProxyOptions(port=0)
        ) as proxy,
    ):
        assert (await posted(proxy.url))[0] == 200
        assert set(way.asked) == {TUNNEL}


WAYS = [
    ("https://a.example/v1", {"HTTPS_PROXY": "http://way:3128"}, "http://way:3128"),
    ("https://a.example/v1", {"https_proxy": "way:3128"}, "http://way:3128"),
    ("https://a.example/v1", {"ALL_PROXY": "http://way:3128"}, "http://way:3128"),
    ("https://a.example/v1", {"HTTP_PROXY": "http://way:3128"}, ""),
    ("http://a.example/v1", {"HTTP_PROXY": "http://way:3128"}, "http://way:3128"),
    ("https://a.example/v1", {"HTTPS_PROXY": "http://way:3128", "NO_PROXY": ".example"}, ""),
    ("https://a.example:8443/v1", {"HTTPS_PROXY": "http://way:3128", "NO_PROXY": "b, a.example:8443"}, ""),
    ("https://a.example:8443/v1", {"HTTPS_PROXY": "http://way:3128", "NO_PROXY": "a.example:443"}, "http://way:3128"),
    ("https://a.example/v1", {"HTTPS_PROXY": "http://way:3128", "NO_PROXY": "*"}, ""),
    ("http://127.0.0.1:8080", {"HTTP_PROXY": "http://way:3128"}, ""),
    ("http://localhost:8080", {"ALL_PROXY": "http://way:3128"}, ""),
    ("https://a.example/v1", {}, ""),
]


@pytest.mark.parametrize(("url", "environment", "way"), WAYS)
def test_which_forward_proxy_the_environment_names(
    url: str, environment: dict[str, str], way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in os.environ if name.lower().endswith("_proxy")]:
        monkeypatch.delenv(name)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert forward_proxy(url, None) == way
    assert forward_proxy(url, "http://given:1") == "http://given:1"
