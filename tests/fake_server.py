"""A program that is started like llama-server, and misbehaves as the environment variable FAKE says.

`good`; `dies`; `illegal`: it dies as on a processor that lacks an instruction, `later`: at its first request; `leaks`
its key and dies; `asks` which of the names in FAKE_FILE it was given, and dies; `never` ready, and connected to the
port in FAKE_FILE meanwhile; `newer`: a field of its /props has another form; `loading` until the file in FAKE_FILE
exists; `deaf`: it ignores SIGTERM; `stubborn`: the same, and it has a worker that does so too, whose port it writes
into FAKE_FILE.
"""

import json
import os
import signal
import socket
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

open_ends: list[socket.socket] = []
HOW = os.environ.get("FAKE", "good")


def option(name: str, default: str = "") -> str:
    return sys.argv[sys.argv.index(name) + 1] if name in sys.argv else default


class Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        loading = HOW == "never" or (HOW == "loading" and not Path(os.environ["FAKE_FILE"]).exists())
        if loading:
            return self.reply(503, {"error": {"message": "Loading model"}})
        key = os.environ.get("LLAMA_API_KEY")
        if self.path == "/props" and key and self.headers["authorization"] != f"Bearer {key}":
            return self.reply(401, {})
        context, slots = int(option("--ctx-size", "8192")), int(option("--parallel", "1"))
        props = {
            "default_generation_settings": {"n_ctx": context // slots},
            "total_slots": {"all": slots} if HOW == "newer" else slots,
            "model_path": option("-m"),
            "chat_template": "",
        }
        known = {"/health": {"status": "ok"}, "/props": props, "/v1/models": {"data": [{"id": option("--alias")}]}}
        return self.reply(200 if self.path in known else 404, known.get(self.path, {}))

    def do_POST(self) -> None:
        if HOW == "later":
            os.kill(os.getpid(), signal.SIGILL)
        self.rfile.read(int(self.headers["content-length"]))
        if self.path != "/v1/chat/completions":
            return self.reply(404, {})
        message = {"role": "assistant", "content": '{"tool": "end", "args": {}}'}
        return self.reply(200, {"choices": [{"message": message, "finish_reason": "stop"}]})

    def reply(self, status: int, body: object) -> None:
        text = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("content-length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *words: object) -> None:
        """Quietly."""


def leave_worker() -> None:
    """Start a child that would outlive its parent; whoever connects to it notices when it dies."""
    server = socket.create_server(("127.0.0.1", 0))
    Path(os.environ["FAKE_FILE"]).write_text(str(server.getsockname()[1]))
    if os.fork() == 0:
        _connection, _ = server.accept()
        while True:
            time.sleep(60)
    server.close()


def main() -> int:
    print(f"loading {option('-m')}", flush=True)
    match HOW:
        case "dies":
            print("E load: failed to open GGUF file", file=sys.stderr)
            return 3
        case "illegal":
            os.kill(os.getpid(), signal.SIGILL)
        case "leaks":
            print(f"my key is {os.environ['LLAMA_API_KEY']}, my token {os.environ['HF_TOKEN']}")
            return 1
        case "asks":
            print("given:", *(name for name in os.environ["FAKE_FILE"].split() if name in os.environ))
            return 1
        case "deaf":
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
        case "stubborn":
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            leave_worker()
        case "never":
            open_ends.append(socket.create_connection(("127.0.0.1", int(os.environ["FAKE_FILE"]))))
    ThreadingHTTPServer(("127.0.0.1", int(option("--port"))), Handler).serve_forever()
    return 0


if __name__ == "__main__":
    sys.exit(main())
