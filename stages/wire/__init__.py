"""Wires: how a conversation is written for a server and how its answer is read, side by side.

`openai` is the chat completions protocol. `prompted` writes tools and calls as text for models or servers
without tool calls of their own; `constrained` adds the JSON Schema of the calls that are legal now (D30).
"""
