# Every target sets up what it needs in .venv; `make PYTHON=python3.12 ...` picks another interpreter.
PYTHON ?= python3
VENV   ?= .venv
BIN     = $(VENV)/bin
WORKERS ?= 2
# Paths or options for pytest: make test TESTS=tests/test_demo.py
TESTS  ?= --doctest-modules xform tests

.PHONY: help demo test slow bench lint format notebooks test-compat array-api clean
help:
	@echo "make demo         fit the lynx and hare data; table and plot"
	@echo "make test         all but the slow tests, with doctests and README; TESTS=... for a part"
	@echo "make slow         the slow tests"
	@echo "make bench        speed beside NumPy, autograd and JAX; BENCH='eager --quick' for a part"
	@echo "make lint         ruff, mypy;  make format: let ruff mend what it can"
	@echo "make notebooks    execute the notebooks in place"
	@echo "make test-compat  the tests with another Python (3.13) and the newest JAX, in .venv-compat"
	@echo "make array-api    the test suite of the Python array API standard, cloned from GitHub"

# One stamp per extra of pyproject.toml; a changed pyproject.toml installs anew.
$(VENV)/%.stamp: pyproject.toml
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[$*]'
	@touch $@
.PRECIOUS: $(VENV)/%.stamp

demo: $(VENV)/demo.stamp
	$(BIN)/python -m demo.lotka_volterra

test: $(VENV)/test.stamp
	$(BIN)/python -m pytest -n $(WORKERS) $(TESTS)

slow: export XFORM_TESTS_OPTIMIZED = 1
slow: $(VENV)/test.stamp
	$(BIN)/python -m pytest -n $(WORKERS) -m slow tests

bench: $(VENV)/bench.stamp
	$(BIN)/python -m benchmarks $(BENCH)

lint: $(VENV)/lint.stamp
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(VENV)/lint.stamp
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

notebooks: $(VENV)/notebooks.stamp
	$(BIN)/python -m nbconvert --to notebook --execute --coalesce-streams --inplace notebooks/*.ipynb

# Two ends of the supported range: `make test` with Python 3.11 and jax 0.10, this one with 3.13 and jax 0.12.
test-compat: PYTHON = python3.13
test-compat:
	$(MAKE) --no-print-directory VENV=.venv-compat PYTHON=$(PYTHON) test

# What fails there by design is in tests/array_api_skips.txt.
ARRAY_API_TESTS = 2026.09.08
array-api: $(VENV)/test.stamp
	@suite=$$(mktemp -d) && trap 'rm -rf "$$suite"' EXIT && \
	git -c advice.detachedHead=false clone --quiet --depth 1 --recurse-submodules --shallow-submodules \
	    --branch $(ARRAY_API_TESTS) https://github.com/data-apis/array-api-tests "$$suite" && \
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r "$$suite/requirements.txt" && \
	python=$(abspath $(BIN)/python) skips=$(abspath tests/array_api_skips.txt) && cd "$$suite" && \
	ARRAY_API_TESTS_MODULE=xform.numpy ARRAY_API_TESTS_VERSION=2025.12 \
	    $$python -m pytest -n $(WORKERS) array_api_tests --disable-deadline --derandomize --skips-file $$skips

clean:
	rm -rf .venv .venv-compat build *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis demo/output
