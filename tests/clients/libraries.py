"""Libraries: the layers of all of them, by the library's name and their own."""

from tests.clients import anthropic_layers, langchain_layers, openai_layers, pydantic_ai_layers
from tests.clients.layers import Layer

LAYERS: dict[str, Layer] = {
    f"{library}: {name}": layer
    for library, layers in {
        "openai": openai_layers.LAYERS,
        "anthropic": anthropic_layers.LAYERS,
        "langchain": langchain_layers.LAYERS,
        "pydantic-ai": pydantic_ai_layers.LAYERS,
    }.items()
    for name, layer in layers.items()
}
