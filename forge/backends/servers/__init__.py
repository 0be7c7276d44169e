"""Servers that forge starts, the models that it downloads for them, and llama.cpp in this process."""
