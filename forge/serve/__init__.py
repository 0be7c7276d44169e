"""Durable runs behind HTTP, with a page to watch and answer them. Needs the extra `serve`."""
