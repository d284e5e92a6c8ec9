# Everything a fresh machine needs beside Java comes from the package registries, by make setup.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
DEV_STAMP := $(VENV)/.set-up
DOCS_STAMP := $(VENV)/.docs-set-up

.PHONY: setup core kernel chromium demo docs test test-all check format bench bench-memory bench-restore bench-kafka bench-formats bench-pulsar bench-windows bench-functions bench-join bench-state soak test-faults screenshots wheel clean help

help:  ## Show what there is to make
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

setup: $(DEV_STAMP) core  ## Install the package and what its development needs into .venv

$(STAMP): pyproject.toml constraints.txt hatch_build.py
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "Headgate needs Python 3.11 or newer; set PYTHON to one: make setup PYTHON=python3.12"; exit 2; }
	@command -v java > /dev/null || [ -n "$$JAVA_HOME" ] \
		|| { echo "Headgate needs Java 17 or newer: install a JDK, or set JAVA_HOME"; exit 3; }
	$(PYTHON) -m venv $(VENV)
	@echo "Installing Headgate and Spark into $(VENV), once: 750 MB"
	$(BIN)/python -m pip install --disable-pip-version-check --constraint constraints.txt --editable .
	@touch $@

# Tools for tests, types and lint; a demo needs none of them.
$(DEV_STAMP): $(STAMP)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev]'
	@touch $@

# What the embedded default needs; the other modules fetch their connector's jars, and come later.
core: $(STAMP)
	@$(BIN)/python -c 'from headgate._kernel.jar import get_jar; get_jar()'

kernel: $(STAMP)  ## Compile the kernel and its modules if their sources changed
	@$(BIN)/python -c 'from headgate._kernel.jar import build_jars; build_jars(progress=print)'

demo: core  ## Run the online store's flow on the embedded default and show results
	$(BIN)/headgate demo

# The site's builder is an extra of its own: make setup does not install it.
$(DOCS_STAMP): $(STAMP)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[docs]'
	@touch $@

docs: $(DOCS_STAMP)  ## Build the documentation site into build/docs; a broken link fails
	@rm -rf build/docs
	$(BIN)/zensical build --config-file mkdocs.yml --strict --clean

chromium: $(DEV_STAMP)  ## Install a browser for the console's tests, unless there is one
	@tests/console/get-chromium $(BIN)

# What runs together and in which order is in tests/conftest.py. Three at a time keep two cores busy: a third
# of a test's time is waiting. Hundreds of tests start a JVM: with an archive of classes in half the time, and
# without one, should that fail, all the same. It is made on one core while the first tests run. A process of
# tests that dies ends the run: xdist 3.8 would replace it, and wait for ever at the end.
# The first run in a clone rewrites the assertions of all files of tests before: each process would do it, and
# it takes 20 s. Meanwhile the archive is made.
COLLECTED := $(VENV)/.collected
COLLECT = env -u PYTHONDONTWRITEBYTECODE $(BIN)/python -m pytest tests --collect-only -q > /dev/null && touch $(COLLECTED)
PYTEST := $(BIN)/python -m pytest tests --numprocesses 3 --dist loadgroup --no-loadscope-reorder --max-worker-restart 0

test: setup kernel chromium  ## Run every test but those marked long
	$(BIN)/headgate prepare kafka+postgres+pulsar & test -e $(COLLECTED) || $(COLLECT); $(PYTEST) -m "not long" --durations 25

test-all: setup kernel chromium  ## Run every test, with more kills, at random moments
	$(BIN)/headgate prepare kafka+postgres+pulsar & test -e $(COLLECTED) || $(COLLECT); HEADGATE_KILLS=8 HEADGATE_MANY_KILLS=40 HEADGATE_CRASH_EXAMPLES=6 HEADGATE_EXAMPLES=1 HEADGATE_SEED=random $(PYTEST) --durations 50

screenshots: setup chromium  ## Take the docs' pictures of the console anew
	HEADGATE_SCREENSHOTS=docs/images $(BIN)/python -m pytest tests/console/test_console.py

check: setup  ## Formatting, lint, types and unit tests
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/python -m pytest tests/unit --numprocesses 3 -q

format: setup  ## Put the formatting right
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: setup  ## Enrich 2,000,000 orders from embedded topics and print the rate
	-$(BIN)/headgate prepare embedded
	$(BIN)/python benchmarks/orders.py

bench-restore: setup  ## What checkpoints cost and how long a restore takes, by the size of state
	-$(BIN)/headgate prepare embedded
	$(BIN)/python benchmarks/restore.py

bench-memory: setup  ## How much memory the orders take by default and with --profile small, and the rates
	-$(BIN)/headgate prepare embedded
	$(BIN)/python benchmarks/memory.py

bench-kafka: setup  ## The same on Kafka, with a broker of its own: rates of both deliveries, and latency
	-$(BIN)/headgate prepare kafka
	$(BIN)/python benchmarks/kafka.py

bench-formats: setup  ## The same orders in each format, one after the other, outputs compared
	-$(BIN)/headgate prepare kafka
	$(BIN)/python benchmarks/formats.py

bench-pulsar: setup  ## The same orders on Kafka and on Pulsar, exactly-once, one after the other
	-$(BIN)/headgate prepare kafka pulsar
	$(BIN)/python benchmarks/pulsar_store.py

bench-cluster: setup  ## Enrich orders on 1 and 2 executors of a cluster here, beside as many local threads
	-$(BIN)/headgate prepare kafka
	$(BIN)/python benchmarks/cluster.py

bench-windows: setup  ## Count 5,000,000 visits in windows on Kafka, beside Spark's own windows
	-$(BIN)/headgate prepare kafka
	$(BIN)/python benchmarks/windows.py

bench-functions: setup  ## Python functions on Kafka beside SQL, a window, Spark and Bytewax
	-$(BIN)/headgate prepare kafka
	$(BIN)/python benchmarks/functions.py

bench-join: setup  ## Join 2,000,000 orders with as many payments on Kafka, beside Spark's own join
	-$(BIN)/headgate prepare kafka
	$(BIN)/python benchmarks/joins.py

bench-state: setup  ## Ask for one of 1,000,000 keys, its history over 20 checkpoints, and a count
	-$(BIN)/headgate prepare embedded
	$(BIN)/python benchmarks/state.py

soak: setup  ## Run thousands of short batches for 20 minutes, and tell what grows
	-$(BIN)/headgate prepare embedded
	$(BIN)/python benchmarks/soak.py

test-faults: setup  ## The long fault suite: many kills at random moments
	-$(BIN)/headgate prepare kafka+postgres+pulsar
	HEADGATE_KILLS=40 HEADGATE_CRASH_EXAMPLES=20 HEADGATE_SEED=random $(BIN)/python -m pytest --timeout 3600 tests/faults tests/brokers/test_kafka_faults.py tests/brokers/test_kafka_cluster.py tests/brokers/test_pulsar_faults.py tests/brokers/test_postgres_faults.py tests/brokers/test_process_faults.py tests/brokers/test_join_faults.py tests/brokers/test_crashed_flows.py -s

wheel: setup  ## Build a wheel with the kernel in it
	$(BIN)/python -m pip wheel --quiet --no-build-isolation --no-deps --wheel-dir dist .

clean:  ## Remove what was built; data under .headgate stays
	rm -rf $(VENV) build dist .cache .mypy_cache .ruff_cache .pytest_cache .hypothesis
	rm -f src/headgate/_kernel/*.jar
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
