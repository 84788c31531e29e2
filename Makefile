# Every target sets up .venv by itself and reuses it. PYTHON names the interpreter that makes it (3.11 or newer).
PYTHON ?= python3
SEED ?= 0

BIN := .venv/bin

.PHONY: quickstart test lint bench setup setup-dev clean

quickstart: .venv/installed  ## Co-RL against TTRL, gold reward and a control, on tiny models: about three minutes
	$(BIN)/mmcorl-compare configs/compare_quickstart.yaml run.seed=$(SEED) --overwrite

test: .venv/installed
	$(BIN)/python -m pytest

lint: .venv/installed-dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/pyright

bench: .venv/installed-dev
	$(BIN)/python bench/shared_prefix.py
	$(BIN)/python bench/rl_step.py

setup: .venv/installed
setup-dev: .venv/installed-dev

.venv/bin/python:
	$(PYTHON) -m venv .venv

.venv/installed: pyproject.toml | .venv/bin/python
	@echo "installing into .venv: about two minutes"
	$(BIN)/pip install --quiet --editable ".[test]"
	touch $@

.venv/installed-dev: pyproject.toml .venv/installed
	$(BIN)/pip install --quiet --editable ".[dev]"
	touch $@

clean:
	rm -rf .venv runs
