"""Reliability: the same tasks done by forge, by forge-guardrails and by a plain loop, on real models.

python -m benchmarks.reliability --help
"""
