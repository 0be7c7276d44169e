"""Wires: codecs that write conversations for servers and read their answers.

`openai` is the chat completions protocol; `ollama` and `anthropic` are those servers' own. `prompted` writes tools and
calls as text, in JSON or XML, for models or servers without native tool calls; the mode `constrained` adds the JSON
Schema of the calls that are legal now. `valid` turns any history into one that strict servers accept.

The server side, for the proxy: `server_wires` has the protocols that clients may speak, `served` what they share. Each
protocol's package has the client codec and, beside it, the server codec.
"""
