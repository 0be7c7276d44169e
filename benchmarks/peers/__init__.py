"""The peers: the same workload with forge, with no framework at all, and with forge-guardrails, side by side."""
