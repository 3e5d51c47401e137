# Needs only make and Python 3.11 or newer; everything else goes into .venv.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip --disable-pip-version-check

# Stamps say what .venv holds; they live inside it, so removing it forgets them too.
MADE   := $(VENV)/.made
CLI    := $(VENV)/.cli
DEV    := $(VENV)/.dev
BENCH  := $(VENV)/.bench
DOCS   := $(VENV)/.docs

# Which benchmark, and the file for the records of the paper's table.
WHAT   ?= sweep
OUT    ?= paper.jsonl

# How long `make soak` looks for failures, and where its cases come from.
SECONDS ?= 3600
SEED    ?= 510

# Two test processes share the machine: one BLAS thread each.
PYTEST := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 MKL_NUM_THREADS=1 $(BIN)/python -m pytest -n 2

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.NOTPARALLEL:
.PHONY: help demo test test-all lowest lint docs bench reproduce soak clean

help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: $(CLI) ## install into .venv, then run the commands on a real table and draw it
	$(BIN)/bowtienet demo

test: lint ## lint, types, import order and all tests but the slow ones
	$(PYTEST)

test-all: lint ## the same with the slow ones
	$(PYTEST) -m ""

lowest: ## the tests with the lowest versions that pyproject.toml allows; needs Python 3.11 or 3.12
	PYTHON=$(PYTHON) .ci/lowest

lint: $(DEV) ## ruff, mypy and import-linter
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo

docs: $(DOCS) ## the documentation with its examples run, in docs/_build/html; warnings are errors
	$(BIN)/sphinx-build --builder html --fail-on-warning --keep-going docs docs/_build/html

bench: $(BENCH) ## a benchmark by its name: WHAT=sweep
	$(BIN)/python -m benchmarks $(WHAT)

reproduce: $(BENCH) ## the paper's table beside ours (BOWTIENET_DATA: its tables); goes on if run again
	$(BIN)/python -m benchmarks paper --out $(OUT)

soak: $(DEV) ## SECONDS=3600 of random tables, settings and files from one SEED=510
	$(BIN)/python -m tests.fuzz.soak --seconds $(SECONDS) --seed $(SEED)

clean: ## remove .venv, caches and build products
	rm -rf $(VENV) build dist docs/_build docs/api/generated docs/gallery .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	find src tests examples benchmarks -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true

$(MADE):
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	    echo "bowtienet needs Python 3.11 or newer: make PYTHON=/path/to/python3.11" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(PIP) install --quiet --upgrade 'pip>=25.1'  # the first with --group
	@touch $@

$(CLI): $(MADE) pyproject.toml constraints.txt
	$(PIP) install --quiet --constraint constraints.txt --editable '.[cli]'
	@touch $@

$(DEV): $(MADE) pyproject.toml constraints.txt
	$(PIP) install --quiet --constraint constraints.txt --editable . --group dev
	@touch $@

$(BENCH): $(MADE) pyproject.toml constraints.txt
	$(PIP) install --quiet --constraint constraints.txt --editable '.[bench]'
	@touch $@

$(DOCS): $(MADE) pyproject.toml constraints.txt
	$(PIP) install --quiet --constraint constraints.txt --editable . --group docs
	@touch $@
