"""Libraries of clients, and their layers by name; each is imported when it is asked for, as that takes seconds."""

from importlib import import_module

from tests.clients.layers import Layer

LIBRARIES = ("openai", "anthropic", "langchain", "pydantic_ai")


def layers_of(library: str) -> dict[str, Layer]:
    """The layers of a library, by their names."""
    layers: dict[str, Layer] = import_module(f"tests.clients.{library}_layers").LAYERS
    return layers
