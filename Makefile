# The two commands: `make demo` and `make test`. Both set up what they need on the way.

export PATH := $(CURDIR)/.venv/bin:$(CURDIR)/.tools/bin:$(PATH)
# pytest workers; two cores are what the suite is made for.
WORKERS ?= 2

.DEFAULT_GOAL := help
.PHONY: help demo test setup lint docs

help:
	@echo "make demo    set up, run the workflow on the shipped study, say where the report is"
	@echo "make test    set up and run the tests"
	@echo "make lint    ruff, mypy, import-linter, snakefmt, snakemake --lint and zizmor"
	@echo "make docs    the documentation as a site, site/index.html"

demo:
	@scripts/setup.sh demo
	@echo && echo "== Running the workflow"
	@snakemake --quiet rules
	@echo && echo "The report is at $(CURDIR)/results/report.html"

setup:
	@scripts/setup.sh test

# With bytecode kept: the tests start hundreds of processes, which would compile all modules again.
test: setup
	@echo && echo "== Running the tests"
	env -u PYTHONDONTWRITEBYTECODE pytest -n $(WORKERS) --dist worksteal

lint: setup
	ruff check
	ruff format --check
	mypy
	lint-imports --no-logo
	snakefmt --check workflow
	snakemake --lint
	zizmor --offline --quiet .github

docs: setup
	mkdocs build --strict
