# make lab        set everything up and open the quickstart in JupyterLab
# make test       set everything up and run every test
# make test-floor the stack's tests with the oldest JAX that is supported
# make test-latest PYTHON=python3.13   every test with the newest JAX that this Python can have
# make check      ruff and pyright: before every push
# make bench      the ratios the README quotes
# make notebooks  run the notebooks and save their outputs
# make fuzz       the differential tests on many more programs (EXAMPLES=5000)

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
EXAMPLES ?= 5000
export JAX_PLATFORMS ?= cpu

# JupyterLab refuses to run as root (containers, CI) unless told that this is meant.
AS_ROOT := $(if $(filter 0,$(shell id -u)),--allow-root)

FLOOR := .venv-floor
LATEST := .venv-latest

.PHONY: lab test test-floor test-latest check bench fuzz notebooks clean

lab: $(VENV)/.lab
	$(BIN)/jupyter lab $(AS_ROOT) --LabApp.default_url=/lab/tree/notebooks/01-quickstart.ipynb $(LAB_OPTIONS)

test: $(VENV)/.test
	$(BIN)/python -m pytest
	$(BIN)/python -m pytest -p no:cacheprovider --nbval --doctest-glob= notebooks

test-floor: $(FLOOR)/.test
	$(FLOOR)/bin/python -m pytest -p no:cacheprovider \
		tests/recording tests/stack tests/conformance tests/fates tests/explain tests/pains

test-latest:
	$(MAKE) test VENV=$(LATEST)

check: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright

bench: $(VENV)/.test
	$(BIN)/python tests/benchmarks/bench.py

fuzz: $(VENV)/.test
	JAXCB_FUZZ_RANDOM=1 JAXCB_FUZZ_EXAMPLES=$(EXAMPLES) $(BIN)/python -m pytest tests/differential

notebooks: $(VENV)/.lab
	$(BIN)/jupyter nbconvert --to notebook --execute --inplace \
		--ExecutePreprocessor.record_timing=False notebooks/*.ipynb

clean:
	rm -rf $(VENV) $(FLOOR) $(LATEST) .pytest_cache .hypothesis .ruff_cache

$(FLOOR)/.test: pyproject.toml
	test -x $(FLOOR)/bin/python || $(PYTHON) -m venv $(FLOOR)
	$(FLOOR)/bin/python -m pip install --quiet --disable-pip-version-check \
		--editable ".[test]" "jax==0.8.0" "jaxlib==0.8.0"
	touch $@

# One stamp for each extra; a changed pyproject.toml installs again.
$(VENV)/.%: pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[$*]"
	touch $@
