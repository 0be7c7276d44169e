"""`make clients`: clients as their users have them, unchanged, against the proxy; nothing of it runs in `make test`."""
