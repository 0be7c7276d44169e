# Every target sets itself up in .venv from nothing but Python 3.11+ and make; the second time it is quick.
PYTHON ?= python3
PIP := .venv/bin/python -m pip --disable-pip-version-check --quiet --quiet

.PHONY: demo test clients pages postgres soak bench bench-functions bench-proxy evals-report docs clean
.DEFAULT_GOAL := test

demo: .venv/demo.ready
	@.venv/bin/forge demo

test: .venv/dev.ready
	@.venv/bin/ruff check --quiet
	@.venv/bin/ruff format --check --quiet
	@.venv/bin/mypy --no-error-summary
	@.venv/bin/python docs/typed.py
	@.venv/bin/lint-imports > .venv/imports.txt || { cat .venv/imports.txt; exit 1; }
	@.venv/bin/pytest --numprocesses=2 --dist=loadgroup --no-loadscope-reorder

# Clients of others, unchanged, against the proxy: Linux, Node 22 or newer, 4 GB of the cache. The checks take two
# minutes; `make clients AGENTS=all RUNS=2` has coding agents do tasks on a real model, which takes hours, and goes on
# where it stopped.
clients: .venv/dev.ready
	@.venv/bin/python -m tests.clients --runs=$(or $(RUNS),1) $(AGENTS)

# Before a release: what takes too long for every change (kills by the hundred, hostile schemas by the clock, every client
# library on a real model), then the laws on thirty times as many examples, which nobody has tried yet.
soak: .venv/dev.ready
	@.venv/bin/pytest -m soak
	@.venv/bin/pytest tests/property tests/stages --hypothesis-profile=soak

# The pages in a real browser: Debian's chromium, found by its path.
pages: .venv/dev.ready
	@command -v chromium > /dev/null || \
	  { echo "the tests of pages need Chromium, which this machine does not have: apt-get install chromium"; exit 1; }
	@$(PIP) install 'playwright>=1.50'
	@.venv/bin/pytest tests/evals/page_in_chromium.py tests/serve/page_in_chromium.py

# The laws of stores on a real Postgres: Debian's, started by the test in a folder of its own, on a free port.
postgres: .venv/dev.ready
	@ls /usr/lib/postgresql/*/bin/postgres > /dev/null 2>&1 || \
	  { echo "these tests start a Postgres server, which this machine does not have: apt-get install postgresql"; exit 1; }
	@$(PIP) install --editable '.[postgres]'
	@.venv/bin/pytest tests/memory/stores_on_postgres.py tests/durable/fleet_on_postgres.py

bench: .venv/dev.ready
	@.venv/bin/python -m benchmarks.results

bench-functions: .venv/dev.ready
	@.venv/bin/pytest benchmarks -o testpaths=benchmarks --benchmark-only --benchmark-group-by=func --benchmark-sort=name --benchmark-columns=min,median,rounds

bench-proxy: .venv/dev.ready
	@.venv/bin/python -m benchmarks.proxy

# The published report, from whatever runs there are; their journals need not be there, but give it its timelines.
evals-report: .venv/dev.ready
	@set -e; { \
	  .venv/bin/forge eval report benchmarks/evals/*.jsonl --against 'forge auto'; echo; \
	  .venv/bin/forge eval report benchmarks/evals/2026-11-27/plain-texts-*.jsonl --title 'Forge again on 2026-11-27'; echo; \
	  .venv/bin/forge eval report benchmarks/evals/unseen/plain.jsonl --title 'Plain requests'; echo; \
	  .venv/bin/forge eval report benchmarks/evals/bfcl/*.jsonl --against 'forge auto' --title BFCL; \
	} > .venv/EVALS.md
	@cp .venv/EVALS.md benchmarks/EVALS.md
	@.venv/bin/forge eval report benchmarks/evals/*.jsonl --against 'forge auto' --html benchmarks/EVALS.html
	@chmod 644 benchmarks/EVALS.html

docs: .venv/docs.ready
	@.venv/bin/python docs/map.py
	@.venv/bin/python docs/scenarios.py
	@.venv/bin/python docs/site.py
	@echo "docs: docs/MAP.md, docs/scenarios.md and site/index.html"

clean:
	rm -rf .venv site

.venv/python.ready:
	@command -v $(firstword $(PYTHON)) > /dev/null || \
	  { echo "there is no $(PYTHON) on this machine. Name a Python 3.11 or newer: make PYTHON=python3.12"; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "forge needs Python 3.11 or newer; $(PYTHON) is older. Try: make PYTHON=python3.12"; exit 1; }
	@echo "setting up .venv (once)"
	@$(PYTHON) -m venv .venv
	@touch $@

.venv/demo.ready: .venv/python.ready pyproject.toml
	@$(PIP) install --editable '.[chat,local,proxy]'
	@touch $@

.venv/docs.ready: .venv/dev.ready
	@$(PIP) install --editable '.[docs]'
	@touch $@

.venv/dev.ready: .venv/python.ready pyproject.toml
	@$(PIP) install --editable '.[local,dev]'
	@touch $@ .venv/demo.ready
