"""A gate before the model's server: every peer is sampled alike, and each of its model calls is counted."""

import http.client
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

TEMPERATURE = 0.7
LONGEST = 256
"""Tokens of one reply."""


class Gate:
    """Forwards to `backend`; `begin` sets the seed of what follows and the count to 0."""

    def __init__(self, backend: str) -> None:
        self.calls = 0
        self._seed = 0
        self._lock = threading.Lock()
        gate, target = self, urlsplit(backend).netloc

        class Forward(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                self._forward(b"")

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                self._forward(gate.sampled(body) if self.path.endswith("/chat/completions") else body)

            def _forward(self, body: bytes) -> None:
                connection = http.client.HTTPConnection(target, timeout=600)
                connection.request(self.command, self.path, body, {"content-type": "application/json"})
                answer = connection.getresponse()
                content = answer.read()
                self.send_response(answer.status)
                self.send_header("content-type", answer.headers.get("content-type", "application/json"))
                self.send_header("content-length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)
                connection.close()

            def log_message(self, *_: object) -> None:
                """Nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Forward)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def begin(self, seed: int) -> None:
        """A new run."""
        with self._lock:
            self._seed, self.calls = seed * 1000, 0

    def sampled(self, body: bytes) -> bytes:
        """The request with the sampling that all peers get."""
        with self._lock:
            self._seed += 1
            self.calls += 1
            seed = self._seed
        request = json.loads(body)
        return json.dumps({**request, "temperature": TEMPERATURE, "seed": seed, "max_tokens": LONGEST}).encode()

    def stop(self) -> None:
        """Close the port."""
        self._server.shutdown()
        self._server.server_close()
