"""The door to HTTP, of the proxy and of `forge serve`: bounds, hosts and origins, answers, clients that leave."""
