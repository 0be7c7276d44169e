"""Wires: codecs that write requests and read answers, as a client of a model's server and as a server of clients.

Each protocol has a folder: `openai` (chat completions and Responses), `anthropic` (Messages), `ollama`. A file named
after the API is the client's half, `<api>_server.py` the server's. What the halves of all protocols share:

- as a client of a backend: `wires` has the protocols as values, `deltas` streams and faults, `target` a model and how
  requests for it are written. `prompted` writes tools and calls as text, for models or servers without native calls;
  the mode `constrained` adds the JSON Schema of the calls that are legal now, by `tool_schemas`. `valid` turns any
  history into one that strict servers accept.
- as a server, in the proxy: `server_wires` has the protocols as values, `server` what they share.
"""
