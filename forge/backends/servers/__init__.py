"""Servers that forge starts, the models that it fetches for them, and llama.cpp in this process."""
