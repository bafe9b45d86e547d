# Everything a developer runs.  `make` alone lists it.
SHELL := /bin/sh
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

BIN := $(CURDIR)/.venv/bin
PY := $(BIN)/python

# The shell's own Python settings stay outside; Spark's workers run in our environment.
unexport PYTHONPATH PYTHONHOME PYTHONSTARTUP VIRTUAL_ENV SPARK_HOME PYSPARK_SUBMIT_ARGS
unexport PYSPARK_DRIVER_PYTHON
# Each of Spark's workers would compile every module it imports.
unexport PYTHONDONTWRITEBYTECODE
export PYTHONNOUSERSITE := 1
export PYSPARK_PYTHON := $(PY)
export PENNON_ORACLE_0_19_2 := $(CURDIR)/.venv-oracle-0.19.2/bin/python
export PENNON_ORACLE_1_0_4 := $(CURDIR)/.venv-oracle-1.0.4/bin/python

# Two workers fit the smallest machine that we build on; all Spark tests go to one of them.
LOWEST_TESTS := $(addprefix tests/unit/,$(addprefix cli/test_,doctor.py main.py terminal.py upkeep.py) core display encoding expr scan schema test_import.py)

PYTEST := $(PY) -m pytest -n $(or $(JOBS),2) --dist loadgroup

.PHONY: help
help: ## list these commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  \033[1mmake %-13s\033[0m %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: setup
setup: ## make .venv (locked), compile the kernels, find or install Java and a C compiler
	@scripts/setup.sh

.PHONY: oracle
oracle: setup
	@scripts/setup.sh oracle

.PHONY: old-oracles
old-oracles: oracle
	@scripts/setup.sh old-oracles

.PHONY: engines
engines: setup
	@scripts/setup.sh engines

.PHONY: embeddings
embeddings: setup
	@scripts/setup.sh embeddings

.PHONY: train
train: setup
	@scripts/setup.sh train

.PHONY: browser
browser: ## Chromium without a window, for the tests of `pennon view`
	@scripts/setup.sh browser

.PHONY: old-sparks
old-sparks: setup
	@scripts/setup.sh old-sparks

.PHONY: demo
demo: setup ## real flights through Spark into Lance tables: write, query, append, read old versions
	@$(PY) demo/flights.py

.PHONY: demo-pipeline
demo-pipeline: setup ## a day of a table's life on Spark: ingest, merge, correct, backfill, compact, diff
	@$(PY) demo/pipeline.py

.PHONY: demo-stream
demo-stream: setup ## streams of flights that are killed twice, compacted tables, each flight counted once
	@$(PY) demo/stream.py

.PHONY: demo-search
demo-search: setup ## texts and vectors, indexed on Spark, searched by vector, by words and by both
	@$(PY) demo/search.py

.PHONY: demo-train
demo-train: train ## a model trained from a Lance table, killed and resumed with other ranks: the same losses
	@$(CURDIR)/.venv-train/bin/python demo/train.py

.PHONY: test
test: oracle ## run the tests, 5 minutes (ARGS="tests/interop -k name": of all but the slow ones)
	@$(PYTEST) -m "$(if $(ARGS),not slow,not slow and not thorough)" $(ARGS)

.PHONY: check
check: oracle ## what CI runs: the tests, and faults, limits, interop, Spark's modes; some variants of long tests
	@$(PYTEST) -m "not slow"

.PHONY: test-all
test-all: old-oracles engines embeddings train browser ## run the slow tests as well, and the kernels with sanitizers (PART=2/3: one part)
	@scripts/setup.sh docs
	@$(PYTEST) --timeout 3600 $(if $(PART),--part $(PART)) $(ARGS)
	@$(if $(PART)$(ARGS),,scripts/sanitize.sh)

.PHONY: asan
asan: setup ## kernels compiled with sanitizers, run over unit tests and mutants (ARGS chooses)
	@scripts/sanitize.sh $(ARGS)

.PHONY: stream-attack
stream-attack: oracle ## streams that fail at every step of a batch and are run again, 200 times (ATTACKS=20)
	@PENNON_STREAM_ATTACKS=$(or $(ATTACKS),200) $(PYTEST) --timeout 7200 -m slow tests/spark/test_stream_kills.py

.PHONY: spark-old
spark-old: old-sparks ## Pennon in Spark 4.0 and 3.5, each in an environment of its own (ARGS="-k sql")
	@for release in 4.0 3.5; do \
		python=$(CURDIR)/.venv-spark-$$release/bin/python; \
		PYSPARK_PYTHON=$$python $$python -m pytest tests/spark_old $(ARGS) || exit 1; \
	done

.PHONY: lint
lint: setup ## ruff, mypy, import contracts, spelling, and no address in any file
	@$(BIN)/ruff check --quiet .
	@$(BIN)/ruff format --check --quiet .
	@$(BIN)/mypy --no-error-summary
	@$(BIN)/lint-imports --no-logo
	@$(BIN)/codespell src tests docs bench demo scripts protos *.md Makefile
	@$(PY) scripts/check_tree.py
	@echo "lint: clean"

.PHONY: format
format: setup ## let ruff format the tree and fix what it can
	@$(BIN)/ruff format --quiet .
	@$(BIN)/ruff check --fix --quiet .

.PHONY: delta-suite
delta-suite: setup ## Delta's own tests, with LanceTable for DeltaTable (SUITE=its test_deltatable.py)
	@PYSPARK_PYTHON=$(abspath $(PY)) $(PY) -m tests.delta $(SUITE) $(ARGS)

.PHONY: upstream-suite
upstream-suite: setup ## Lance's own tests, Pennon beside pylance (SUITE=its python/python/tests ARGS="test_vector.py")
	@test -d build/upstream || $(PY) -m pip install --quiet --disable-pip-version-check --no-deps \
		--target build/upstream tqdm ml_dtypes pillow duckdb polars polars-runtime-32
	@$(PY) -m tests.upstream $(SUITE) $(ARGS)

.PHONY: engine-suite
engine-suite: engines ## a library's own tests of Lance, Pennon beside pylance (SUITE=lance-ray ARGS=tests/test_fragment.py)
	@test -d build/engine-suite/pylance || { .venv-engines/bin/python -m pip install --quiet --disable-pip-version-check \
		--no-deps --target build/engine-suite/tools pytest pytest-asyncio pytest-timeout pluggy iniconfig pillow psutil \
		backports.asyncio.runner geoarrow-rust-core soundfile cffi pycparser && .venv-engines/bin/python -m pip install \
		--quiet --disable-pip-version-check --no-deps --target build/engine-suite/pylance pylance==14.0.2; }
	@$(PY) -m tests.engines.suite $(SUITE) $(ARGS)

.PHONY: bench
bench: setup ## beside pylance and Parquet (QUICK=1: 2 minutes; ARGS="--group text" to choose)
	@$(PY) bench/run.py $(if $(QUICK),--quick) $(ARGS)

.PHONY: bench-shapes
bench-shapes: setup ## many fragments, wide tables, changes, threads, object stores (QUICK=1; ARGS="--group wide")
	@LANCE_LOG=error $(PY) bench/shapes.py $(if $(QUICK),--quick) $(ARGS)

.PHONY: bench-spark
bench-spark: setup ## table operations beside Delta, lance-spark and Parquet on Spark (QUICK=1)
	@$(PY) bench/spark_turns.py $(if $(QUICK),--quick) $(ARGS)

.PHONY: bench-spark-memory
bench-spark-memory: setup ## the memory of a merge on Spark, by the rows of the table (ARGS="--rows 100000")
	@$(PY) bench/spark_memory.py $(ARGS)

.PHONY: bench-streams
bench-streams: setup ## a batch of a stream by the fragments of its tables, and a stream that lags (ARGS="--versions 1000")
	@$(PY) bench/streams.py $(ARGS)

.PHONY: bench-sql
bench-sql: setup ## TPC-H and a wide table by pennon.spark.sql, beside spark.sql over Parquet (QUICK=1; ARGS="--scale 0.1")
	@$(PY) bench/sql.py $(if $(QUICK),--quick) $(ARGS)

.PHONY: bench-search
bench-search: setup ## indices and searches beside pylance and FAISS (QUICK=1; ARGS="--group vectors-100k")
	@$(PY) bench/search.py $(if $(QUICK),--quick) $(ARGS)

.PHONY: bench-loader
bench-loader: train ## training batches beside lance.torch, MosaicML Streaming and HF datasets (QUICK=1; ARGS="--rows-of text")
	@$(PY) bench/loader.py $(if $(QUICK),--quick) $(ARGS)

.PHONY: docs
docs: setup ## check the documents: links, named files, ledger numbers, named tests
	@$(PY) scripts/check_docs.py

.PHONY: site
site: ## the documents as a website in build/site, with an API reference; every link is checked (SERVE=1 shows it)
	@scripts/setup.sh docs
	@$(CURDIR)/.venv-docs/bin/python scripts/website/build.py $(if $(SERVE),--serve)

.PHONY: compatibility
compatibility: old-oracles ## try tables of many releases of Lance, and write docs/compatibility.md
	@$(PY) scripts/compatibility.py

.PHONY: protos
protos: ## compile protos/ into src/pennon/proto
	@scripts/setup.sh protos
	@scripts/compile_protos.sh

.PHONY: build
build: setup ## a source archive, and a wheel made of it, in dist/
	@$(PY) scripts/build.py

.PHONY: wheel
wheel: setup ## only the wheel, of the tree
	@$(PY) scripts/build.py --wheel

.PHONY: try-wheel
try-wheel: setup ## install the wheel of dist/ in a bare environment, run README's lines, measure (TRY=python3.13)
	@test -n "$$(ls dist/pennon-*.whl 2>/dev/null)" || $(PY) scripts/build.py --wheel
	@$(PY) scripts/build.py --check
	@$(PY) scripts/try_wheel.py $(if $(TRY),--python $(TRY))

.PHONY: sbom
sbom: setup ## the bill of materials of a default install, CycloneDX, in dist/
	@$(PY) scripts/sbom.py

.PHONY: lower-bounds
lower-bounds: setup ## a part of the unit tests with the oldest releases of each dependency
	@scripts/setup.sh lowest
	@$(CURDIR)/.venv-lowest/bin/python -m pytest -n $(or $(JOBS),2) -m "not slow" $(or $(ARGS),$(LOWEST_TESTS))

.PHONY: lock
lock: ## renew the lock files (UPGRADE=1: to the newest versions; needs the program uv)
	@UPGRADE=$(UPGRADE) scripts/lock.sh

.PHONY: clean
clean: ## remove everything that was made, the environments too
	@rm -rf build dist .venv .venv-oracle-* .venv-engines .venv-embeddings .venv-train .venv-spark-* .venv-docs .venv-protos .venv-lowest .pytest_cache .mypy_cache .ruff_cache
	@rm -rf .import_linter_cache .hypothesis spark-warehouse demo-data bench/results bench/.peers src/*.egg-info
	@find src -name '*.so' -delete -o -name '*.c' -delete
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
