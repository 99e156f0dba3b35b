# make lab          set everything up and open the first tutorial in JupyterLab
# make test         set everything up and run the tests, in about six minutes: before every push
# make test-all     also the long tests; PLAIN=1 without the shortcuts of tests/conftest.py
# make quick        the tests to run between two edits, in 90 seconds
# make check        ruff, pyright and tsc: before every push
# make test-floor   the tests of the stack with the oldest supported JAX, those of `make test`; SHORT= also the long ones
# make test-latest  every test with the newest JAX, on the newest Python found (or PYTHON=python3.13),
#                   those of the stack also with JAX's flags for what it will change
# make quick-latest of these, what a release of JAX breaks first: conformance, host_callback and 30 random
#                   programs, in five minutes
# make test-gpu     the tests of the stack, and figures, on the accelerator that JAX finds, in five minutes; installs
#                   nothing: PYTHON needs JAX, NumPy, SciPy, numba, pytest and hypothesis
# make frontend     build the TypeScript front end
# make notebooks    run the notebooks and save their outputs
# make docs         build the documentation: docs/_build/html/index.html, and each page as Markdown
# make pictures     take the screenshots and films of docs/pictures, light and dark
# make bench        the table of docs/benchmarks.md; AGAINST=../other compares with another checkout
# make bench-browser  the figures about JupyterLab, in Chromium
# make dist         build and check sdist and wheel, and use the wheel in an empty environment
# make binder       do what Binder would do, in an empty environment
# make fuzz         test random programs (EXAMPLES=5000 SEED=1)
# make mutants      plant more than 100 mistakes, one at a time; a test must fail for each
# make soak         drop PROGRAMS=1000 programs of each kind, interrupt MOMENTS=1000 times, then run a mixed load
#                   in several threads for SECONDS=3600

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
EXAMPLES ?= 5000
# Of the first program; each run of `make fuzz` has other ones if there is none.
SEED ?=
SECONDS ?= 3600
PROGRAMS ?= 1000
MOMENTS ?= 1000
# Python compiles the modules that it imports, a tenth of what pip would compile.
QUIETLY := --quiet --disable-pip-version-check --no-compile
# Test processes at a time: one more than a small machine has cores, since some tests wait for kernels
# and other processes. A file's tests stay in one, as they share kernels, processes and programs they
# ran. Files begin in the order that tests/conftest.py gives them, slow ones first, and not, as
# by default, those with the most tests: the slowest have few, and one worker would end with them.
JOBS ?= 3
PARALLEL := -n $(JOBS) --dist loadfile --no-loadscope-reorder
# Only the notebooks need nbval, whose import takes seconds in each process.
WITHOUT_NBVAL := -p no:nbval
QUICK := tests/test_layers.py tests/recording tests/report tests/host_callback tests/documents \
	tests/diagnostics/record $(addprefix tests/stack/,core register flavors dispatch \
	lowering errors lint queued)
# The tests that run, as pytest's -m; empty: all.
TESTS ?=
# The tests of `make test`, and its tutorials.
SHORT := not long
FIRST_TUTORIALS := $(wildcard notebooks/0[1-3]-*.ipynb)
IN_TEST := TESTS="$(SHORT)" TUTORIALS="$(FIRST_TUTORIALS)"
# Stops with one line if Python, or what is named behind it, is missing.
NEEDS := $(PYTHON) tests/release/needs.py
export JAX_PLATFORMS ?= cpu
# Not empty: tests/conftest.py takes no shortcuts.
PLAIN ?=
export JAXCB_TESTS_PLAIN := $(PLAIN)
# Containers often set it; each of the many processes would then compile all of JAX again, for seconds.
unexport PYTHONDONTWRITEBYTECODE

# JupyterLab refuses to run as root (containers, CI) unless an option allows it.
AS_ROOT := $(if $(filter 0,$(shell id -u)),--allow-root)

FLOOR := .venv-floor
LATEST := .venv-latest
RELEASE := .venv-release

# The front end, built: what a wheel holds of it.
FRONTEND := jupyter_jaxcb/labextension/package.json
MODULES := labextension/node_modules/.package-lock.json
SOURCES := $(shell find labextension/src labextension/style labextension/schema -type f) \
	labextension/build.mjs labextension/package.json $(wildcard jupyter_jaxcb/*/*/*.css)

.PHONY: help lab test test-all quick test-python test-frontend test-browser test-floor test-latest quick-latest test-jax test-upgraded test-gpu \
	check frontend chromium bench bench-browser fuzz mutants soak notebooks pictures docs dist binder clean

help:
	@sed -n '/^# make /,/^$$/s/^# //p' Makefile

# Without JupyterLab's question about news over the tutorial, and without its check for updates: the
# defaults in .jupyter; what the user has set counts.
lab: $(VENV)/.lab $(VENV)/.installed
	JUPYTER_CONFIG_PATH="$(CURDIR)/.jupyter$${JUPYTER_CONFIG_PATH:+:$$JUPYTER_CONFIG_PATH}" \
		$(BIN)/jupyter lab $(AS_ROOT) --LabApp.default_url=/lab/tree/notebooks/01-quickstart.ipynb $(LAB_OPTIONS)

test:
	@$(MAKE) --no-print-directory test-all $(IN_TEST)

# The tests of the front end run while what the others need is installed, which waits for the network.
test-all:
	@$(NEEDS) node chromium $(if $(wildcard $(VENV)/.browser),,network)
	$(MAKE) --jobs 3 test-frontend $(VENV)/.browser chromium
	$(MAKE) test-python test-browser

# What breaks first: how a call is bound, lowered, made, recorded and reported. Not `slow`: processes,
# kernels and whole campaigns.
quick: $(VENV)/.test
	$(BIN)/python -m pytest $(PARALLEL) $(WITHOUT_NBVAL) -m "not slow" $(QUICK)

# Installed for the browser tests at the same time: twice takes longer.
test-python: $(VENV)/.browser
	$(BIN)/python -m pytest $(PARALLEL) $(WITHOUT_NBVAL) -m "$(TESTS)" --ignore tests/browser
	$(BIN)/python -m tests.documents.run_notebooks $(PARALLEL) $(TUTORIALS)

test-frontend: $(MODULES)
	cd labextension && npm test

# Apart: the driver of a browser keeps an event loop running in its process.
test-browser: $(VENV)/.browser $(FRONTEND) chromium
	$(BIN)/python -m pytest $(PARALLEL) -p no:cacheprovider -m "$(TESTS)" tests/browser

test-floor: $(FLOOR)/.test
	$(FLOOR)/bin/python -m pytest $(PARALLEL) -p no:cacheprovider -m "$(SHORT)" \
		tests/recording tests/stack tests/diagnostics tests/conformance tests/host_callback \
		tests/notebook/magics/test_explain.py \
		tests/notebook/magics/test_record_jax.py tests/test_bench.py tests/programs \
		tests/test_pytest_plugin.py
	$(FLOOR)/bin/python -m tests.documents.run_notebooks $(PARALLEL) $(FIRST_TUTORIALS)

# An environment that is there already keeps its Python.
WITH_LATEST = if test -x $(LATEST)/bin/python; then python=$(LATEST)/bin/python; \
	else python=$$($(PYTHON) tests/release/newest_python.py); fi && \
	$(MAKE) VENV=$(LATEST) PYTHON="$$python"

test-latest:
	+$(WITH_LATEST) test-all test-upgraded

quick-latest:
	+$(WITH_LATEST) test-jax

# What a release of JAX breaks first.
test-jax: $(VENV)/.test
	$(BIN)/python -m pytest $(PARALLEL) $(WITHOUT_NBVAL) -p no:cacheprovider \
		tests/conformance tests/host_callback tests/programs

# With the replacements of checkpoint, custom_jvp and custom_vjp that JAX 0.12 has behind flags.
test-upgraded: $(VENV)/.test
	JAX_REMAT3=1 JAX_CUSTOM_VJP3=1 JAX_CUSTOM_JVP3=1 $(BIN)/python -m pytest $(PARALLEL) \
		-m "$(TESTS)" tests/stack tests/conformance tests/host_callback \
		tests/diagnostics tests/programs

# The user's choice of a platform counts, but not the CPU that the other tests run on.
test-gpu:
	$(if $(filter file,$(origin JAX_PLATFORMS)),env -u JAX_PLATFORMS) $(PYTHON) -m tests.accelerator

check: $(VENV)/.dev $(MODULES)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright
	cd labextension && npm run check

frontend: $(FRONTEND)

chromium:
	@$(NEEDS) chromium
	@command -v chromium >/dev/null || command -v google-chrome >/dev/null || \
		{ apt-get update -qq && apt-get install -qq -y chromium >/dev/null; }

bench: $(VENV)/.test
	$(BIN)/python -m benchmarks $(if $(AGAINST),--against $(AGAINST))

bench-browser: $(VENV)/.browser $(FRONTEND) chromium
	$(BIN)/python -m tests.browser.bench

fuzz: $(VENV)/.test
	$(BIN)/python -m tests.programs.fuzz --examples $(EXAMPLES) $(if $(SEED),--seed $(SEED))

mutants: $(VENV)/.test $(MODULES)
	$(BIN)/python -m tests.mutants $(if $(ONLY),--only $(ONLY))

soak: $(VENV)/.test
	JAXCB_PROGRAMS=$(PROGRAMS) $(BIN)/python -m pytest tests/stack/test_dropped_programs.py
	JAXCB_MOMENTS=$(MOMENTS) $(BIN)/python -m pytest tests/stack/interrupt/test_interrupts_in_flight.py
	$(BIN)/python -m benchmarks.soak --seconds $(SECONDS)

pictures: $(VENV)/.dev $(FRONTEND) chromium
	$(BIN)/python tests/browser/pictures.py

notebooks: $(VENV)/.lab
	$(BIN)/jupyter nbconvert --to notebook --execute --inplace \
		--ExecutePreprocessor.record_timing=False notebooks/*.ipynb

docs: $(VENV)/.docs
	$(BIN)/python -m sphinx --quiet -E -W --keep-going -b html docs docs/_build/html
	$(BIN)/python -m sphinx --quiet -W --keep-going -b markdown docs docs/_build/html
	@echo docs/_build/html/index.html

# These two take from the network what they need, and end with an error that says what failed.
dist: $(FRONTEND) $(RELEASE)/.tools
	rm -rf dist
	$(RELEASE)/bin/python -m build --outdir dist
	$(RELEASE)/bin/twine check --strict dist/*
	$(RELEASE)/bin/cffconvert --validate
	$(PYTHON) tests/release/installed.py dist/*.whl

binder:
	$(PYTHON) tests/release/replay_binder.py

clean:
	rm -rf dist docs/_build docs/_generated docs/tutorials $(RELEASE)
	rm -rf jupyter_jaxcb/static jupyter_jaxcb/labextension labextension/lib labextension/node_modules
	rm -rf $(VENV) $(FLOOR) $(LATEST) .pytest_cache .hypothesis .ruff_cache

$(MODULES): labextension/package-lock.json
	@$(NEEDS) node network
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
	$(FLOOR)/bin/python -m pip install $(QUIETLY) --editable ".[test]" "jax==0.10.0" "jaxlib==0.10.0"
	touch $@

# Apart: cffconvert wants an older jsonschema than Jupyter does.
$(RELEASE)/.tools:
	test -x $(RELEASE)/bin/python || $(PYTHON) -m venv $(RELEASE)
	$(RELEASE)/bin/python -m pip install $(QUIETLY) build twine cffconvert
	touch $@

# One stamp for each extra; a changed pyproject.toml installs again. The front end comes first: an
# install would build it too, more slowly.
$(VENV)/.%: pyproject.toml | $(FRONTEND)
	@$(NEEDS) network
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install $(QUIETLY) --editable ".[$*]"
	touch $@
