"""What the servers of all protocols share. Each protocol's own half is `<protocol>_server.py` in its folder.

- `request`: a client's request in one form for all protocols, and changes to its body.
- `decoding`: bodies read within limits, tools, and the checks that all protocols make.
- `streams`: replies as the parts of an answer: ids of calls, blocks, and server-sent events, written or passed on.
- `errors`: why a client gets no reply, and the HTTP answer that carries the reason.
- `translation`: a request's options for a backend of another protocol.

`stages.wire.server_wires` puts a protocol's functions together, as the value that the proxy works with.
"""
