# Everything Branchline needs beyond Python 3.11+ and Java 17+ is installed by these targets.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
DEMO_SECONDS ?= 60
PYTEST_ARGS ?=
BENCH_ARGS ?=
# Modules are compiled once, and not again by each of the hundreds of processes of the suite.
unexport PYTHONDONTWRITEBYTECODE
FILTER_TESTS := $(addprefix tests/routing/test_,$(addsuffix .py,compiling widening intervals filters covers relations \
  sql sql_duckdb cesql_evaluate cloudevents_filters eventbridge_oracle))

OVERLAY_TESTS := tests/streaming/test_overlay.py tests/streaming/test_two_sites.py tests/ops/test_topology_script.py \
  tests/ops/test_demo.py tests/ops/test_kills.py

.DEFAULT_GOAL := help
.PHONY: help setup demo test test-fast soak-properties soak-filters soak-faults soak-spine soak-overlay \
  soak-methods soak-strategies soak-durability bench-match bench-pipeline check format clean

help: ## show what there is
	@echo "Branchline: a content-based event router for Kafka."
	@echo
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-15s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
	@echo
	@echo "DEMO_SECONDS=N sets how long the demo runs; PYTHON=... chooses the interpreter;"
	@echo "PYTEST_ARGS='--kafka container' runs the tests on a Kafka in Docker."
	@echo "BENCH_ARGS='--rounds 3 --out FILE' is for the benchmarks beside others; see benchmarks/README.md."

# Made under its final name only at the very end, so a broken-off set-up is begun again.
$(READY): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
	  echo "error: Python 3.11 or newer is needed; '$(PYTHON)' is $$($(PYTHON) --version 2>&1)."; \
	  echo "hint: install one, or name it: make PYTHON=python3.12 ..."; exit 3; }
	@{ [ -n "$$JAVA_HOME" ] && [ -x "$$JAVA_HOME/bin/java" ]; } || command -v java >/dev/null || { \
	  echo "error: no Java found; Branchline needs Java 17 or newer."; \
	  echo "hint: install a JDK 17 package (on Debian or Ubuntu: openjdk-17-jre-headless), or set JAVA_HOME."; exit 3; }
	@echo "[1/3] creating the virtual environment in $(VENV)"
	@rm -rf $(VENV) && { $(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); \
	  echo "hint: this Python has no venv module; on Debian or Ubuntu install python3-venv."; exit 3; }; }
	@echo "[2/3] installing Branchline and its Python packages (Spark is large: a minute or two)"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]' || { \
	  echo "hint: the package index could not be reached, or lacks a package; check the network and run make again."; exit 3; }
	@echo "[3/3] fetching the Kafka server and the Spark connector"
	@$(BIN)/branchline setup
	@touch $(READY)

setup: $(READY) ## install everything that is needed, once
	@$(BIN)/branchline setup --quiet

demo: setup ## run Kafka, the router, three subscribers and a feed of events for DEMO_SECONDS
	@$(BIN)/branchline demo --seconds $(DEMO_SECONDS)

test: setup check ## run all checks and tests
	@HYPOTHESIS_PROFILE=thorough $(BIN)/python tests/side_by_side.py $(PYTEST_ARGS)

test-fast: setup ## run the tests that need no Java: seconds
	@$(BIN)/python -m pytest -m "not kafka and not spark and not slow" $(PYTEST_ARGS)

soak-properties: setup ## run the property tests with 1,000 fresh examples each: a quarter of an hour
	@HYPOTHESIS_PROFILE=soak $(BIN)/python -m pytest -m "not kafka and not spark and not slow" --timeout 1800 $(PYTEST_ARGS)

soak-filters: setup ## run the laws of the filter language with 20,000 fresh examples each: an hour
	@HYPOTHESIS_PROFILE=filters $(BIN)/python -m pytest $(FILTER_TESTS) --timeout 3600 $(PYTEST_ARGS) \
	  && echo "verdict: all laws of the filter language hold" \
	  || { echo "verdict: a law of the filter language is broken, see above"; exit 1; }

soak-faults: setup ## 5,000 random scripts with faults over simulated overlays of brokers: half an hour
	@$(BIN)/branchline simulate docs/simulations/faults.toml

soak-spine: setup ## 10,000 events, 50 subscriptions, a killed driver, killed workers, 1, 2 and 4 shards
	@BRANCHLINE_TEST_EVENTS=10000 $(BIN)/python -m pytest tests/streaming/test_volume.py tests/ops/test_up.py -q -s $(PYTEST_ARGS)

soak-overlay: setup ## 8 brokers, 1,000 subscriptions, 20,000 events, jobs killed, two Kafka clusters: half an hour
	@BRANCHLINE_TEST_OVERLAY=full $(BIN)/python -m pytest $(OVERLAY_TESTS) -q -s $(PYTEST_ARGS) \
	  && echo "verdict: clean" || { echo "verdict: not clean, see above"; exit 1; }

soak-methods: setup ## any two methods together on 8 brokers, real Kafka and Spark, started anew with each: half an hour
	@BRANCHLINE_TEST_METHODS=full $(BIN)/python -m pytest tests/streaming/test_methods.py -q -s $(PYTEST_ARGS) \
	  && echo "verdict: clean" || { echo "verdict: not clean, see above"; exit 1; }

soak-strategies: setup ## who is told of which filter, with every way to forward, on 8 brokers, real Kafka and Spark: half an hour
	@$(BIN)/branchline simulate docs/simulations/strategy-faults.toml
	@BRANCHLINE_TEST_STRATEGIES=full $(BIN)/python -m pytest tests/streaming/test_strategies.py -q -s $(PYTEST_ARGS) \
	  && echo "verdict: clean" || { echo "verdict: not clean, see above"; exit 1; }

soak-durability: setup ## 200,000 events and 20 kills, what exactly once costs, recovery, an hour of chaos: two hours
	@$(BIN)/python -m pytest tests/soaks/exactly_once.py -q -s $(PYTEST_ARGS)
	@$(BIN)/branchline bench delivery
	@$(BIN)/branchline bench recovery
	@$(BIN)/branchline chaos --minutes 6 --seeds 1-10 --delivery exactly-once --markdown

bench-match: setup ## matching beside event-ruler and Lucene's monitor, and the other targets: three quarters of an hour
	@$(BIN)/python -m benchmarks.compare_match $(BENCH_ARGS)

bench-pipeline: setup ## Kafka to Kafka beside a loop around event-ruler and Spark alone: an hour and a half
	@$(BIN)/python -m benchmarks.compare_pipeline --filters 10000 $(BENCH_ARGS)
	@$(BIN)/python -m benchmarks.compare_pipeline --filters 100000 --events 60000 $(BENCH_ARGS)

check: setup ## lint, formatting, types and dependencies
	@$(BIN)/ruff check
	@$(BIN)/ruff format --check --quiet
	@$(BIN)/mypy
	@$(BIN)/python tests/audit.py

format: setup ## format the code
	@$(BIN)/ruff check --fix
	@$(BIN)/ruff format

clean: ## remove the virtual environment and caches (jars stay in the Branchline home)
	rm -rf $(VENV) build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
