# Every target makes its own environment, .venv, from PyPI.
# Another interpreter: make PYTHON=python3.12 test.  More options for pytest: make test ARGS="-k dtw".
PYTHON ?= python3
WORKERS ?= 2
ARGS ?=
SECONDS ?= 600
ENGINE ?= numba
SEED ?=
BEFORE ?= HEAD~1
MACHINE ?= this
VENV := .venv
BIN := $(VENV)/bin

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help demo test guard sanitize fuzz mutants lint format docs outputs compare bench history clean

help: ## show this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-8s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: $(VENV)/.plot ## fit the estimators on the sample data, print a table, draw demo.png
	$(BIN)/python examples/demo.py $(ARGS)

test: $(VENV)/.test ## run the tests with a share of their cases (all: SKTS_TEST_SHARE=1; slow ones: ARGS="-m slow")
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal $(ARGS)

guard: $(VENV)/.test ## the tests with checks of bounds: of Numba's arrays, and on the emulator of a GPU
	SKTS_TEST_SHARE=1 NUMBA_BOUNDSCHECK=1 NUMBA_CACHE_DIR=$(abspath build/bounds) \
	    $(BIN)/python -m pytest -n $(WORKERS) --dist worksteal $(ARGS)
	for side in end begin; do \
	    SKTS_EMULATE_GPU=1 SKTS_EMULATOR_GUARD=$$side \
	    $(BIN)/python -m pytest -n $(WORKERS) --dist worksteal -m "gpu and not slow" $(ARGS) || exit 1; \
	done

sanitize: $(VENV)/.test ## small works under compute-sanitizer; needs a GPU and CuPy (ARGS="--tool memcheck")
	$(BIN)/python tests/sanitize.py $(ARGS)

mutants: $(VENV)/.test ## change the engines in one place at a time, see what tests notice (ARGS="--sample 300 --seed 1")
	$(BIN)/python -m tests.mutation $(ARGS)

fuzz: $(VENV)/.test ## attack an engine with random calls (SECONDS=600 ENGINE=numba SEED=1 ARGS="--jobs 4")
	$(BIN)/python -m tests.fuzz --seconds $(SECONDS) --engine $(ENGINE) --jobs $(WORKERS) $(if $(SEED),--seed $(SEED)) $(ARGS)

lint: $(VENV)/.dev ## ruff, formatting, types and docstrings
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/numpydoc lint $$(find skts -name '*.py')

format: $(VENV)/.dev ## let ruff format the code and mend what it can
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: $(VENV)/.docs ## build the documentation in docs/_build/html; a warning is an error
	$(BIN)/sphinx-build -W --keep-going -b html docs docs/_build/html $(ARGS)

outputs: $(VENV)/.test ## run the code of all pages, write what it prints into them (ARGS="README.md")
	$(BIN)/python -m tests.pages --write $(ARGS)

compare: $(VENV)/.test ## time the works of two versions in turn, fail where one got slower (BEFORE=COMMIT)
	rm -rf build/before && git worktree prune && git worktree add --force --detach build/before $(BEFORE)
	$(BIN)/python -m benchmarks.two_trees --before build/before --engine $(ENGINE) $(ARGS); \
	    status=$$?; git worktree remove --force build/before; exit $$status

bench: $(VENV)/.dev ## run the asv benchmarks once in this environment (ARGS="--bench dtw")
	$(BIN)/asv machine --yes
	$(BIN)/asv run --environment existing:$(abspath $(BIN))/python --quick --show-stderr $(ARGS)

# Benchmarks that are kept over the life of the project: benchmarks/life.py, which runs at every commit.
HISTORY := --bench "^life\."

history: $(VENV)/.dev ## time some benchmarks at the commits of benchmarks/history/commits, and keep that (MACHINE=name)
	$(BIN)/asv machine --yes --machine "$(MACHINE)"
	$(BIN)/asv run HASHFILE:benchmarks/history/commits --machine "$(MACHINE)" --skip-existing-commits \
	    $(HISTORY) --attribute rounds=1 --attribute repeat=3 --attribute warmup_time=0.3 $(ARGS)

clean: ## remove the environment and everything that was built
	rm -rf $(VENV) build dist demo.png docs/_build docs/auto_examples docs/api/generated
	rm -rf .pytest_cache .ruff_cache .mypy_cache .hypothesis .asv .coverage fuzz-found .numba-bounds
	find skts tests benchmarks docs examples -name __pycache__ -type d -prune -exec rm -rf {} +

# One stamp for each extra: installed once, and again when pyproject.toml has changed.
$(VENV)/.%: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[$*]"
	@touch $@

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)
