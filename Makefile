# Everything from a fresh checkout: `make demo` to see it work, `make test` to prove it.
# Set-up happens on the first call; later calls find the stamp files in $(VENV) and start at once.

VENV ?= .venv
PYTHON ?= $(shell for p in python3 python3.14 python3.13 python3.12 python3.11; do \
	if $$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then echo $$p; break; fi; done)
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check

.DEFAULT_GOAL := help
.PHONY: help demo test lint types layers tests benchmarks clean

help:
	@echo "make demo        install what a user needs and measure the built-in policies on every curated task"
	@echo "make test        install the tools and run everything: lint, types, layers, tests, benchmark smoke run"
	@echo "make lint        ruff check and ruff format --check"
	@echo "make types       mypy --strict"
	@echo "make layers      import-linter: who may import whom"
	@echo "make tests       pytest only"
	@echo "make benchmarks  benchmarks in smoke mode: that they run, not how fast"
	@echo "make clean       remove the virtual environment and every cache"
	@echo "Settings: PYTHON (3.11 or newer), VENV (default .venv), AGENTEVAL_DATA, AGENTEVAL_POSTGRESQL_URL"

demo: $(VENV)/.runtime
	@$(BIN)/agenteval demo

test: lint types layers tests benchmarks

lint: $(VENV)/.dev
	$(BIN)/ruff check
	$(BIN)/ruff format --check

types: $(VENV)/.dev
	$(BIN)/mypy

layers: $(VENV)/.dev
	$(BIN)/lint-imports

tests: $(VENV)/.dev
	$(BIN)/python -m pytest -n 2

benchmarks: $(VENV)/.dev
	$(BIN)/python -m benchmarks --smoke

clean:
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -not -path './.git/*' -prune -exec rm -rf {} +

# Debian keeps ensurepip in a package of its own and leaves half an environment behind where it is missing.
$(BIN)/python:
	@test -n "$(PYTHON)" || { echo "agenteval needs Python 3.11 or newer and found none. Install it, or name it: make PYTHON=/path/to/python3"; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
		package=$(notdir $(PYTHON))-venv; \
		if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
			apt-get update -q && DEBIAN_FRONTEND=noninteractive apt-get install -q -y "$$package"; \
		else \
			echo "$(PYTHON) cannot make virtual environments. Install the package $$package and run make again."; exit 1; \
		fi; }
	rm -rf $(VENV)
	$(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); exit 1; }

# --group needs pip 25.1, newer than the one a Debian virtual environment starts with.
$(VENV)/.runtime: pyproject.toml | $(BIN)/python
	$(PIP) install --quiet --upgrade "pip>=25.1"
	$(PIP) install --quiet --editable .
	@touch $@

$(VENV)/.dev: pyproject.toml | $(VENV)/.runtime
	$(PIP) install --quiet --editable . --group dev
	@touch $@
