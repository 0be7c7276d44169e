"""Ollama's own protocol: https://docs.ollama.com/api/chat."""
