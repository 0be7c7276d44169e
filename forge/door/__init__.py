"""HTTP for the proxy and `forge serve`: limits, hosts and origins, responses, client disconnects."""
