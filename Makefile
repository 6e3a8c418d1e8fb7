# Two commands do everything: `make demo` and `make test`.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
# Processes of `make test`.
WORKERS ?= 2
# The build finds a C++ compiler and these; without a compiler it is left out.
BUILD_TOOLS := 'cmake>=3.18' 'nanobind>=2.4' 'ninja>=1.11'

.PHONY: writeup-pdf demo test test-slow native test-native test-dist test-browser release-check test-mlflow test-tools test-autogluon test-spark docs accessibility docs-links compat fuzz soak kill-test speed pages clean

demo: $(VENV)/.lab
	$(BIN)/python tools/native.py build --optional
	$(BIN)/scboost-lab demo

test: $(VENV)/.dev
	$(BIN)/python tools/native.py build --optional
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/mypy tools
	OMP_NUM_THREADS=1 MPLBACKEND=Agg $(BIN)/python -m pytest -q -m 'not slow' -n $(WORKERS) --dist loadfile

# Tests that build, install or kill processes. Continuous integration runs them after `make test`.
test-slow: $(VENV)/.dev
	OMP_NUM_THREADS=2 MPLBACKEND=Agg $(BIN)/python -m pytest -q -m slow

# The compiled kernels, in place. Needs a C++17 compiler; everything but engine="native" works without them.
native: | $(BIN)/python
	$(BIN)/python -m pip install --quiet $(BUILD_TOOLS)
	$(BIN)/python tools/native.py build

# Their tests with AddressSanitizer and UndefinedBehaviorSanitizer.
test-native: $(VENV)/.dev
	$(BIN)/python tools/native.py test

# Wheel and sdist: built, installed in an empty environment, tested. Part of `make test-slow`.
test-dist: $(VENV)/.dev
	$(BIN)/python -m pytest -q tests/test_distribution.py

# A rehearsal of the release: sdist and wheel built twice and compared, checked, installed from a folder into empty
# environments; README, tutorial, command line and fast tests against the installed library; links, versions, changelog,
# golden files, conda recipe; SBOM and licences in dist/. Needs a package index. `python tools/release.py prepare 0.2.0` comes first.
release-check: $(VENV)/.dev
	$(BIN)/python -m pip install --quiet 'build>=1.2.2' 'check-wheel-contents>=0.6' 'cyclonedx-bom>=5' 'py-rattler-build>=0.70' 'twine>=6'
	$(BIN)/python tools/release.py check

# The report in a real browser. Installs Debian's Chromium where there is none, which needs root.
test-browser: $(VENV)/.dev
	command -v chromium chromedriver || { apt-get update -qq && apt-get install -y -qq --no-install-recommends chromium chromium-driver fonts-dejavu-core; }
	$(BIN)/python -m pip install --quiet 'selenium>=4.20'
	OMP_NUM_THREADS=2 $(BIN)/python -m pytest -q tests/browser

# The recipes for mlflow, whose lightest form still brings thirty packages along.
test-mlflow: $(VENV)/.dev
	$(BIN)/python -m pip install --quiet 'mlflow-skinny>=3' skops
	OMP_NUM_THREADS=2 $(BIN)/python -m pytest -q tests/test_mlflow.py

# Pipelines in ONNX, and the recipes for skrub, Ray, ibis and mlflow.
test-tools: $(VENV)/.dev
	$(BIN)/python -m pip install --quiet skl2onnx skrub 'ibis-framework[duckdb]' ray 'mlflow-skinny>=3' skops
	OMP_NUM_THREADS=1 MPLBACKEND=Agg $(BIN)/python -m pytest -q tests/test_tools.py tests/test_skl2onnx.py tests/test_mlflow.py

# scboost as a model of AutoGluon: AutoGluon's own test of a model class, in an environment of its own (700 MB, no torch).
test-autogluon:
	$(PYTHON) -m venv build/autogluon
	build/autogluon/bin/python -m pip install --quiet autogluon.tabular .
	PYTHONPATH=lab/src OMP_NUM_THREADS=1 build/autogluon/bin/python -m scboost_lab.autogluon_model

# Spark, from the package index. Installs a Java runtime of Debian where there is none, which needs root.
test-spark: $(VENV)/.dev
	command -v java || { apt-get update -qq && apt-get install -y -qq --no-install-recommends openjdk-17-jre-headless; }
	$(BIN)/python -m pip install --quiet 'pyspark>=3.5'
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q tests/spark 'tests/test_guide.py::test_the_code_of_the_page_runs[spark]'

# The site, into docs/_build/html; a warning is an error.
docs: $(VENV)/.docs
	OMP_NUM_THREADS=1 $(BIN)/python -m sphinx -W --keep-going -q -j auto -b html docs docs/_build/html
	@echo "open docs/_build/html/index.html"

# The write-up as a PDF, docs/_build/writeup.pdf; needs Chromium.
writeup-pdf: $(VENV)/.dev
	$(BIN)/python -m pip install --quiet markdown-it-py
	$(BIN)/python tools/writeup_pdf.py docs/_build/writeup.pdf

# The built site and a report by axe-core in Chromium: no serious findings. Needs npm, and `make docs` first.
accessibility: $(VENV)/.dev
	command -v chromium chromedriver || { apt-get update -qq && apt-get install -y -qq --no-install-recommends chromium chromium-driver fonts-dejavu-core; }
	npm install --silent --prefix build/axe axe-core
	$(BIN)/python tools/accessibility.py

# Whether other sites answer to the links of this one: needs the network, and is part of the hosted workflow. Links
# within the repository are checked by `make test`.
docs-links: $(VENV)/.docs
	$(BIN)/python -m sphinx -q -b linkcheck -D plot_gallery=0 docs docs/_build/links

# What depends most on versions, on the lowest and newest ones; half an hour. Python 3.11 or newer runs it.
compat: | $(BIN)/python
	$(BIN)/python tools/compat.py

# Mutants of model files: each is refused with a clear error or is a right model. `make fuzz SEED=1 MINUTES=30`
SEED ?= 0
MINUTES ?= 5
fuzz: $(VENV)/.dev
	OMP_NUM_THREADS=1 $(BIN)/python tools/fuzz.py --seed $(SEED) --minutes $(MINUTES)

# Hostile data and random parameters: a clear refusal, or every promise of a fit. `make soak SEED=1 MINUTES=30`
soak: $(VENV)/.dev
	OMP_NUM_THREADS=1 $(BIN)/python tools/soak.py --seed $(SEED) --minutes $(MINUTES)

# Fits killed at random moments and resumed, full and read-only disks; a few minutes.
kill-test: $(VENV)/.dev
	OMP_NUM_THREADS=1 $(BIN)/python tools/kill_test.py --seed $(SEED)

# Needs a machine that does nothing else.
speed: $(VENV)/.lab
	$(BIN)/scboost-lab speed

# The generated documents, from the committed results.
pages: $(VENV)/.lab
	$(BIN)/scboost-lab reproduce page --out results/reproduction --page docs/reproduction.md
	$(BIN)/scboost-lab default_study page
	$(BIN)/scboost-lab pruning --page-only
	$(BIN)/scboost-lab speed --page-only
	$(BIN)/scboost-lab benchmarks
	$(BIN)/scboost-lab writeup
	$(BIN)/scboost-lab guide
	$(BIN)/scboost-lab readme
	$(BIN)/python tools/reliability_page.py
	$(BIN)/python tools/distributed_page.py

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip

$(VENV)/.lab: pyproject.toml lab/pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet $(BUILD_TOOLS) -e '.[cpu]' -e lab
	touch $@

$(VENV)/.dev: pyproject.toml lab/pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet -e '.[cpu,plot,dev]' -e lab
	touch $@

$(VENV)/.docs: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet -e '.[cpu,plot,docs]'
	touch $@

clean:
	rm -rf $(VENV) .compat build dist docs/_build docs/gallery docs/api/generated .mypy_cache .pytest_cache .ruff_cache
