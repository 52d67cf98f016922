# Every target sets up .venv first when it has to. `make help` lists them.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.PHONY: help setup demo test test-all explore coverage lint bench bench-scale fuzz stress trust graph results docs sbom release lock clean

help: ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 10

setup: $(READY) ## make .venv, install the lock file and the package

# torch comes first and by its exact version: a looser requirement, met by another package, may bring a much larger build.
$(READY): requirements.lock pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "rarenode needs Python 3.11 or newer; try make PYTHON=python3.11")'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet "$$(grep '^torch==' requirements.lock)"
	$(BIN)/python -m pip install --quiet -r requirements.lock
	$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation --editable .
	touch $@

demo: setup ## train in four ways on synthetic data; ends in a table and a report of the nodes found, build/demo.html
	$(BIN)/rarenode demo --out build/demo.html

test: setup ## run the tests, in a few minutes; RARENODE_DATA=folder adds those on the real datasets
	$(BIN)/python -m pytest -n 2 -m "not slow"

test-all: setup ## run all tests, slow ones too; the same examples every time
	$(BIN)/python -m pytest -n 2

explore: setup ## run all tests with new random examples
	seed=$${HYPOTHESIS_SEED:-$$($(BIN)/python -c 'import secrets; print(secrets.randbelow(2**32))')}; \
	echo "Hypothesis seed: $$seed (HYPOTHESIS_SEED=$$seed make explore repeats it)"; \
	$(BIN)/python -m pytest -n 2 --hypothesis-profile explore --hypothesis-seed $$seed

coverage: setup ## run all tests, and list what they do not cover; takes twice as long
	$(BIN)/python -m pytest -n 2 --cov rarenode --cov-report term:skip-covered --cov-report html:build/coverage

lint: setup ## ruff, mypy --strict, import-linter, and whether generated parts of docs/ are true
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m tools.draw_package_graph --check
	$(BIN)/python tools/write_results.py --check
	$(BIN)/python tools/sbom.py --check

bench: setup ## time and memory against the dense formula; also to build/bench.json
	$(BIN)/python -m bench

bench-scale: setup ## how time and memory grow with rows, nodes and edges, in an hour; draws docs/images/scale.svg
	$(BIN)/python -m bench.scale

fuzz: setup ## read spoiled files of every kind for SECONDS (60), decided by SEED (0)
	$(BIN)/python -m tools.fuzz --seconds $(or $(SECONDS),60) --seed $(or $(SEED),0)

stress: setup ## kill a training 200 times and commands now and then; full disks and read-only folders
	$(BIN)/python -m tools.stress $(if $(SECONDS),--seconds $(SECONDS)) --seed $(or $(SEED),0)

# Other inputs and moments every day; what fails is repeated with the SEED that is printed.
trust: setup ## fuzz and stress for SECONDS (120) in sum, with a new seed every day
	$(eval TRUST_SEED := $(or $(SEED),$(shell date +%Y%m%d)))
	@echo "seed: $(TRUST_SEED) (make trust SEED=$(TRUST_SEED) repeats it)"
	$(BIN)/python -m tools.fuzz --seconds $$(( $(or $(SECONDS),120) / 2 )) --seed $(TRUST_SEED)
	$(BIN)/python -m tools.stress --seconds $$(( $(or $(SECONDS),120) / 2 )) --seed $(TRUST_SEED)

graph: setup ## draw the package graph and the figures of the documentation into docs/images
	$(BIN)/python -m tools.draw_package_graph
	$(BIN)/python -m tools.draw_figures

results: setup ## write docs/results, and the figures of the documentation, from the records in results/
	$(BIN)/python tools/write_results.py
	$(BIN)/python -m tools.draw_figures

docs: setup ## build the documentation into build/site; broken links and anchors are errors
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build

sbom: setup ## write docs/dependencies.md and build/sbom.json (CycloneDX) from requirements.lock
	$(BIN)/python tools/sbom.py

release: setup ## write wheel, sdist and bill of materials to dist/, and try them in an empty environment
	$(BIN)/python tools/release.py

lock: setup ## resolve pyproject.toml anew into requirements.lock
	$(BIN)/python tools/lock.py

clean: ## remove what the targets made
	rm -rf $(VENV) build .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache .grimp_cache
