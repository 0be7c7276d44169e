"""Wires: how a conversation is written for a server and how its answer is read, side by side.

`openai` is the chat completions protocol, `ollama` and `anthropic` are those servers' own. `prompted` writes tools
and calls as text, in a form of JSON or of XML, for models or servers without tool calls of their own; `constrained`
adds the JSON Schema of the calls that are legal now. `valid` makes any history one that strict servers take.

Forge as a server: `server_wires` has the protocols that clients speak to it, `served` the noun of a request, `answers`
what an answer needs beside the reply. In each protocol's package its own side stands beside the client's.
"""
