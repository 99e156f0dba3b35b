# make lab        set everything up and open the quickstart in JupyterLab
# make test       set everything up and run every test
# make test-floor the stack's tests with the oldest JAX that is supported
# make test-latest PYTHON=python3.13   every test with the newest JAX that this Python can have
# make check      ruff, pyright and tsc: before every push
# make frontend   build the TypeScript front end
# make bench      the ratios the README quotes
# make notebooks  run the notebooks and save their outputs
# make pictures   the screenshots of docs/
# make docs       the documentation, docs/_build/index.html
# make dist       sdist and wheel, checked, and used in an empty environment
# make binder     what Binder would do, in an empty environment
# make fuzz       the differential tests on many more programs (EXAMPLES=5000)
# make soak       a mixed load for SECONDS=3600: no lost call, no growing memory

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
EXAMPLES ?= 5000
SECONDS ?= 3600
# Test processes at a time; a file's tests stay in one, as they share kernels and programs they ran.
JOBS ?= 2
PARALLEL := -n $(JOBS) --dist loadfile
export JAX_PLATFORMS ?= cpu

# JupyterLab refuses to run as root (containers, CI) unless told that this is meant.
AS_ROOT := $(if $(filter 0,$(shell id -u)),--allow-root)

FLOOR := .venv-floor
LATEST := .venv-latest
RELEASE := .venv-release

# The front end, built: what a wheel holds of it.
FRONTEND := jupyter_jaxcb/labextension/package.json
MODULES := labextension/node_modules/.package-lock.json
SOURCES := $(shell find labextension/src labextension/style labextension/schema -type f) \
	labextension/build.mjs labextension/package.json

.PHONY: lab test test-python test-frontend test-browser test-floor test-latest check frontend \
	chromium bench fuzz soak notebooks pictures docs dist binder clean

lab: $(VENV)/.lab $(VENV)/.installed
	$(BIN)/jupyter lab $(AS_ROOT) --LabApp.default_url=/lab/tree/notebooks/01-quickstart.ipynb $(LAB_OPTIONS)

test: test-frontend test-python test-browser

test-python: $(VENV)/.test
	$(BIN)/python -m pytest $(PARALLEL) --ignore tests/browser
	$(BIN)/python -m tests.tutorials.run

test-frontend: $(MODULES)
	cd labextension && npm test

# Apart: the driver of a browser keeps an event loop running in its process.
test-browser: $(VENV)/.browser $(FRONTEND) chromium
	$(BIN)/python -m pytest $(PARALLEL) -p no:cacheprovider tests/browser

test-floor: $(FLOOR)/.test
	$(FLOOR)/bin/python -m pytest $(PARALLEL) -p no:cacheprovider \
		tests/recording tests/stack tests/buffers tests/results tests/derivatives tests/errors \
		tests/conformance tests/fates tests/explain tests/pains tests/host_callback tests/migrate \
		tests/observe tests/executors tests/gather tests/soak
	$(FLOOR)/bin/python -m tests.tutorials.run

test-latest:
	$(MAKE) test VENV=$(LATEST)

check: $(VENV)/.dev $(MODULES)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright
	cd labextension && npm run check

frontend: $(FRONTEND)

chromium:
	@command -v chromium >/dev/null || command -v google-chrome >/dev/null || \
		if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
			apt-get update -qq && apt-get install -qq -y chromium >/dev/null; \
		else \
			echo "The browser tests need chromium. Install it with the system's package" \
				"manager, as in: sudo apt-get install chromium" >&2; exit 1; \
		fi

bench: $(VENV)/.test
	$(BIN)/python tests/benchmarks/bench.py
	$(BIN)/python tests/benchmarks/executors.py

fuzz: $(VENV)/.test
	JAXCB_FUZZ_RANDOM=1 JAXCB_FUZZ_EXAMPLES=$(EXAMPLES) $(BIN)/python -m pytest tests/differential

soak: $(VENV)/.test
	$(BIN)/python tests/soak/soak.py --seconds $(SECONDS)

pictures: $(VENV)/.dev $(FRONTEND) chromium
	$(BIN)/python tests/browser/pictures.py

notebooks: $(VENV)/.lab
	$(BIN)/jupyter nbconvert --to notebook --execute --inplace \
		--ExecutePreprocessor.record_timing=False notebooks/*.ipynb

docs: $(VENV)/.docs
	$(BIN)/python -m sphinx --quiet -E -W --keep-going -b html docs docs/_build
	@echo docs/_build/index.html

# These two take from the network what they need, and end with an error that says what failed.
dist: $(FRONTEND) $(RELEASE)/.tools
	rm -rf dist
	$(RELEASE)/bin/python -m build --outdir dist
	$(RELEASE)/bin/twine check --strict dist/*
	$(RELEASE)/bin/cffconvert --validate
	$(PYTHON) tests/packaging/installed.py dist/*.whl

binder:
	$(PYTHON) tests/binder/replay.py

clean:
	rm -rf dist docs/_build docs/_generated $(RELEASE)
	rm -rf jupyter_jaxcb/static jupyter_jaxcb/labextension labextension/lib labextension/node_modules
	rm -rf $(VENV) $(FLOOR) $(LATEST) .pytest_cache .hypothesis .ruff_cache

$(MODULES): labextension/package-lock.json
	cd labextension && npm ci --ignore-scripts --no-audit --no-fund
	touch $@

$(FRONTEND): $(MODULES) $(SOURCES)
	cd labextension && npm run build
	touch $@

# The built front end where a JupyterLab of this environment finds it: a link, so a new build counts.
$(VENV)/.installed: $(VENV)/.lab $(FRONTEND)
	mkdir -p $(VENV)/share/jupyter/labextensions
	rm -rf $(VENV)/share/jupyter/labextensions/jupyter-jaxcb
	ln -s $(CURDIR)/jupyter_jaxcb/labextension $(VENV)/share/jupyter/labextensions/jupyter-jaxcb
	touch $@

$(FLOOR)/.test: pyproject.toml | $(FRONTEND)
	test -x $(FLOOR)/bin/python || $(PYTHON) -m venv $(FLOOR)
	$(FLOOR)/bin/python -m pip install --quiet --disable-pip-version-check \
		--editable ".[test]" "jax==0.8.0" "jaxlib==0.8.0"
	touch $@

# Apart: cffconvert wants an older jsonschema than Jupyter does.
$(RELEASE)/.tools:
	test -x $(RELEASE)/bin/python || $(PYTHON) -m venv $(RELEASE)
	$(RELEASE)/bin/python -m pip install --quiet --disable-pip-version-check build twine cffconvert
	touch $@

# One stamp for each extra; a changed pyproject.toml installs again. The front end comes first: an
# install would build it too, more slowly.
$(VENV)/.%: pyproject.toml | $(FRONTEND)
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[$*]"
	touch $@
