# The only list of commands: people, hooks and CI all call these targets.
SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

# What the checkers look at; a folder that is not there yet is left out.
CODE = $(wildcard src tests scripts benchmarks examples)
# Many tests wait for processes to start and die, so three at a time suit two cores.
JOBS ?= 3
ONLY ?=
export PYTHON

.PHONY: help
help: ## List the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /\1\t/' \
		| while IFS=$$'\t' read -r name text; do printf '%-12s %s\n' "$$name" "$$text"; done

.PHONY: setup
setup: ## Make .venv with the pinned packages (PYTHON=... picks an interpreter)
	@bash scripts/setup.sh

.PHONY: check
check: setup check-format check-lint check-types check-imports check-tidy check-docs ## All checks but tests

.PHONY: check-format
check-format: setup
	.venv/bin/ruff format --check --quiet .

.PHONY: check-lint
check-lint: setup
	.venv/bin/ruff check --quiet .

.PHONY: check-types
check-types: setup
	.venv/bin/mypy --no-error-summary $(CODE)

.PHONY: check-imports
check-imports: setup
	.venv/bin/lint-imports --no-cache --no-logo

.PHONY: check-tidy
check-tidy: setup
	.venv/bin/python scripts/tidy.py

.PHONY: check-docs
check-docs: setup
	.venv/bin/python scripts/rooms.py --check
	.venv/bin/python scripts/reference.py --check

.PHONY: check-golden
check-golden: setup # a hook's check: it compares the working tree with HEAD
	.venv/bin/python scripts/golden_guard.py

.PHONY: fix
fix: setup ## Format, apply safe lint fixes, renew the map of rooms and the reference
	.venv/bin/ruff check --fix --quiet . || true
	.venv/bin/ruff format --quiet .
	.venv/bin/python scripts/rooms.py --write
	.venv/bin/python scripts/reference.py

.PHONY: test
test: check ## Everything CI runs: setup, check, the whole suite (JOBS=3 files at a time)
	@bash scripts/in_memory.sh bash scripts/test.sh $(JOBS)

.PHONY: test-unit
test-unit: setup ## The fast tests: no server, no process
	.venv/bin/python -m pytest tests/unit

# One after the other: each fills a small machine. The first test of each starts all that is needed.
CLUSTER = bash scripts/in_memory.sh .venv/bin/python -m pytest -m cluster -o faulthandler_timeout=900
.PHONY: test-cluster
test-cluster: setup ## The whole stage suite, and more, on a standalone cluster, then on a Connect server
	$(CLUSTER) tests/spark/test_standalone.py
	$(CLUSTER) tests/spark/test_connect.py tests/spark/test_connect_work.py

.PHONY: test-azure
test-azure: setup ## Object stores on Azurite: installs it by npm, about a minute and 360 MB
	npm install --no-audit --no-fund --prefix .venv/azurite azurite@3.37.0
	.venv/bin/python -m pytest tests/compliance/test_azure_object_store.py

.PHONY: bench
bench: setup ## Benchmarks as JSON lines on stdout (ONLY=<prefix> picks some)
	@.venv/bin/python -m benchmarks --only "$(ONLY)"

.PHONY: demo
demo: setup ## Run playbooks, look at one in the past, prove its state
	@bash examples/demo.sh

.PHONY: lock
lock: setup ## Take the newest versions into requirements/dev.txt
	@bash scripts/lock.sh

.PHONY: clean
clean: ## Remove .venv, caches and build output
	rm -rf .venv .setup.lock .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache build dist
	find . -name __pycache__ -type d -not -path './.git/*' -prune -exec rm -rf {} +
