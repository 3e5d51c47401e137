# Needs only make and Python 3.11 or newer; everything else goes into .venv.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip --disable-pip-version-check

# Stamps say what .venv holds; they live inside it, so removing it forgets them too.
MADE   := $(VENV)/.made
CORE   := $(VENV)/.core
CLI    := $(VENV)/.cli
DEV    := $(VENV)/.dev
BENCH  := $(VENV)/.bench
BIGDATA := $(VENV)/.bigdata
DOCS   := $(VENV)/.docs

# The tests run the core on torch too. `make test TORCH=` does without; those tests are then skipped.
TORCH  ?= torch==2.13.0

# What `make reproduce` runs, and the folder for it.
WHAT   ?= all
OUT    ?= reproduced

# How long `make soak` looks for failures, and where its cases come from.
SECONDS ?= 3600
SEED    ?= 500

MATHEMATICS := $(addprefix tests/,distributions model posterior inference prediction oracles statistical)

# Two test processes share the machine: one BLAS thread each.
PYTEST := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 MKL_NUM_THREADS=1 $(BIN)/python -m pytest -n 2

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.NOTPARALLEL:
.PHONY: help demo check test test-all test-mutations test-bench soak lint format bench bench-convergence bench-speed bench-fit bench-predict bench-prune bench-structure bench-outcomes bench-bigdata study-fit study-defaults study-priors study-representation reproduce figures docs dist paper clean

help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-18s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: $(CLI) ## install into .venv, then fit, compare, predict, prune and plot two data sets
	$(BIN)/bowtienet demo --force

check: lint ## lint, types, import order, the engine's mathematics and scikit-learn's contract
	$(PYTEST) $(MATHEMATICS) tests/estimators/test_contract.py

test: lint ## the same and all tests of a process of their own: no clusters, browsers or signals
	$(PYTEST)

test-all: lint ## everything: also slow statistics, clusters, browsers, signals, the built wheel
	$(PYTEST) -m ""

bench-speed: $(DEV) ## a sweep against the speed of a matrix product
	$(BIN)/python -m benchmarks.speed.sweep

test-bench: $(DEV) $(BENCH) ## tests of the paper's experiments, with the libraries of all methods
	$(PYTEST) -m "" tests/paper

soak: $(DEV) ## SECONDS=3600 of random tables, settings, files, kills and commands from one SEED=500, two cases at a time
	$(BIN)/python -m tests.fuzz.soak --seconds $(SECONDS) --seed $(SEED) --jobs 2

test-mutations: $(DEV) ## break each update in turn and see that a test notices
	$(BIN)/python tests/mutations/run.py

lint: $(DEV) ## ruff, mypy and import-linter
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo

format: $(DEV) ## sort imports, apply safe fixes, format
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

bench: $(BENCH) $(BIGDATA) ## all short benchmarks on one page, ratios against the committed ones (ACCEPT=1 takes the new)
	$(BIN)/python -m benchmarks.bench $(if $(ACCEPT),--accept)

bench-convergence: $(CORE) ## sweeps and seconds to convergence
	$(BIN)/python -m benchmarks.convergence.study

bench-fit: $(BENCH) $(BIGDATA) ## seconds and memory of a fit by rows and columns, beside others, with a plot
	$(BIN)/python -m benchmarks.speed.fit --plot

bench-predict: $(CORE) ## seconds and memory of predicting a million rows
	$(BIN)/python -m benchmarks.speed.predict

bench-prune: $(DEV) ## what pruning saves and loses on five sets (needs BOWTIENET_DATA)
	$(BIN)/python -m benchmarks.structure.prune

reproduce: $(BENCH) ## the paper's experiments beside competitors: WHAT=all OUT=reproduced; goes on if run again
	$(BIN)/python -m benchmarks.paper $(WHAT) --out $(OUT)

bench-bigdata: $(BIGDATA) ## both solvers on up to ten million rows, cluster workers
	$(BIN)/python -m benchmarks.bigdata.scale
	$(BIN)/python -m benchmarks.bigdata.cluster

figures: $(DEV) ## run the examples that draw, and renew the plots of the documentation
	$(BIN)/python examples/toy_pruning.py
	$(BIN)/python examples/diabetes_selection.py
	$(BIN)/python examples/displays.py

docs: $(DOCS) ## the documentation with its examples run, in docs/_build/html; warnings are errors
	$(BIN)/sphinx-build --builder html --fail-on-warning --keep-going docs docs/_build/html
	@echo "The documentation is in $(CURDIR)/docs/_build/html/index.html"

dist: $(DEV) ## wheel and sdist in dist, tried in an environment of their own
	PYTHON=$(CURDIR)/$(BIN)/python .ci/dist

paper: $(CORE) ## renew the tables of the paper draft from docs/measurements
	$(BIN)/python paper/renew_tables.py

study-representation: $(DEV) ## what columns in bins and warped targets are worth (needs BOWTIENET_DATA)
	$(BIN)/python -m benchmarks.accuracy.representation

study-fit: $(DEV) ## what a default fit reaches, and its parts (needs BOWTIENET_DATA): VARIANTS="default effort=fast"
	$(BIN)/python -m benchmarks.accuracy.fit $(if $(VARIANTS),--variants $(VARIANTS))

bench-structure: $(DEV) ## columns found in planted tables and how many are false, beside others; goes on if run again
	mkdir -p $(OUT)
	$(BIN)/python -m benchmarks.structure.study --out $(OUT)/structure.jsonl

bench-outcomes: $(BENCH) ## classes, counts and outliers beside others, with their page; goes on if run again
	mkdir -p $(OUT)
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m benchmarks.outcomes.study --out $(OUT)/outcomes.jsonl --page docs/measurements/outcomes.md

study-defaults: $(DEV) ## each default of the estimator against its alternatives
	$(BIN)/python -m benchmarks.accuracy.defaults

study-priors: $(DEV) ## prediction and structure by prior (needs BOWTIENET_DATA)
	$(BIN)/python -m benchmarks.accuracy.priors

clean: ## remove .venv, caches and build products
	rm -rf $(VENV) build dist docs/_build docs/api/generated docs/gallery .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	find src tests examples benchmarks -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true

$(MADE):
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	    echo "bowtienet needs Python 3.11 or newer: make PYTHON=/path/to/python3.11" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(PIP) install --quiet --upgrade 'pip>=25.1'  # the first with --group
	@touch $@

$(CORE): $(MADE) pyproject.toml constraints.txt
	$(PIP) install --quiet --constraint constraints.txt --editable .
	@touch $@

$(CLI): $(MADE) pyproject.toml constraints.txt
	$(PIP) install --quiet --constraint constraints.txt --editable '.[cli]'
	@touch $(CORE) $@

$(DEV): $(MADE) pyproject.toml constraints.txt
	$(if $(TORCH),$(PIP) install --quiet --constraint constraints.txt $(TORCH))
	$(PIP) install --quiet --constraint constraints.txt --editable . --group dev
	@touch $(CORE) $@

# torch first: the extra is then content with the build that TORCH asked for.
$(BENCH): $(MADE) pyproject.toml constraints.txt
	$(if $(TORCH),$(PIP) install --quiet --constraint constraints.txt $(TORCH))
	$(PIP) install --quiet --constraint constraints.txt --editable '.[bench]'
	@touch $(CORE) $@

$(BIGDATA): $(MADE) pyproject.toml constraints.txt
	$(PIP) install --quiet --constraint constraints.txt --editable '.[bigdata,plot]'
	@touch $(CORE) $@

$(DOCS): $(MADE) pyproject.toml constraints.txt
	$(PIP) install --quiet --constraint constraints.txt --editable . --group docs
	@touch $(CORE) $@
