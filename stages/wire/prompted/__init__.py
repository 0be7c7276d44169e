"""Tools and calls as text, for models and servers without tool calls of their own."""
