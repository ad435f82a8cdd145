# Everything runs in .venv, which is created on first use and recreated when setup.cfg or constraints.txt changes.
PYTHON ?= python3
BIN := .venv/bin
INSTALLED := .venv/.installed
DEMO := runs/demo

.PHONY: install demo test lint bench storm docs notebooks site release-check

install: $(INSTALLED)

$(INSTALLED): setup.cfg constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo 'qrl needs Python 3.11 or newer; name one with: make PYTHON=/path/to/python3.11 ...'; exit 2; }
	$(PYTHON) -m venv --clear .venv
	$(BIN)/pip install --quiet -c constraints.txt -e '.[dev]'
	@touch $@

demo: $(INSTALLED)
	$(BIN)/collect-dataset $(DEMO)/six-rooms.npz --config demo --force
	$(BIN)/train-agent --config demo dataset=$(DEMO)/six-rooms.npz run=$(DEMO)/mrn-fixed --force
	$(BIN)/train-agent --config demo dataset=$(DEMO)/six-rooms.npz run=$(DEMO)/unconstrained \
	  model.name=unconstrained-disc-sigmoid --force
	$(BIN)/explore-agents $(DEMO)/explorer.html $(DEMO)/mrn-fixed $(DEMO)/unconstrained --force
	$(BIN)/compare-agents $(DEMO)/report.html $(DEMO)/mrn-fixed $(DEMO)/unconstrained \
	  --explorer $(DEMO)/explorer.html --force

test: $(INSTALLED)
	$(BIN)/python -m pytest -n auto --dist worksteal

lint: $(INSTALLED)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# Regenerates what needs no training; the pages on training and evaluation name their own commands.
docs: $(INSTALLED)
	$(BIN)/collect-dataset $(DEMO)/coverage.npz --config demo --force
	$(BIN)/inspect-dataset $(DEMO)/coverage.npz --picture docs/coverage.png --force
	$(BIN)/python docs/heads.py
	for kind in dense sparse block; do $(BIN)/collect-graph $(DEMO)/$$kind.npz kind=random-$$kind \
	  --picture docs/graphs/$$kind.png --force || exit 1; done
	$(BIN)/python docs/objectives.py
	$(BIN)/python docs/worlds.py
	$(BIN)/python docs/studies.py

# The documentation site, in site/: needs no network, and neither do its pages.
site: $(INSTALLED)
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict
	@echo 'open site/index.html'

# Executes the tutorials and writes them back with their outputs.
notebooks: $(INSTALLED)
	$(BIN)/python docs/tutorials/run.py

bench: $(INSTALLED)
	$(BIN)/python -m benchmarks

storm: $(INSTALLED)
	$(BIN)/python -m tests.storm --out docs/reliability.md

# Builds, installs and runs the last commit in a clean environment; runs the demo there with BIN=... INSTALLED= .
release-check: $(INSTALLED)
	$(BIN)/python -m tests.release
