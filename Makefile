# Every target does its own set-up: Python 3.11 or newer, pip and make are all that it needs.
#
#   make example   install odfbuild with a Java runtime, build the example project
#   make dev       install what the quick tests need, and nothing of Spark, Java or the system
#   make check     run the quick tests, which need nothing but Git
#   make test      install what the tests need, run them
#   make fuzz      made-up definitions, queries, blocks and slices, for hours
#   make mutants   change single places of odf/, plan/ and sql/, and list what no test notices
#   make coverage  run the tests without Spark, print which lines of odfbuild they reach
#   make lint      style, types, imports between rooms, generated schemas
#   make docs      the documentation as a site, in build/site
#   make wheel     the package as a wheel, in dist (needs npm)
#   make site-libraries  fetch what pages of `docs build` draw with (needs npm)
#   make bench     heads of 10 000 chains; plan of 100, 1 000 and 10 000 datasets beside other tools
#   make clean     remove what the targets above made

# With PYSPARK=4.2.1 all runs against that release of PySpark, in an environment of its own.
VENV := .venv$(PYSPARK:%=-pyspark-%)
BIN := $(VENV)/bin
SOURCES := pyproject.toml setup.py
# What needs neither Spark nor servers, and says most about a change; tests/docs/test_workflows.py
# holds it against the packages of requirements/check.lock.
CHECK := tests/odf tests/plan tests/project tests/report tests/test_values.py \
  --ignore tests/plan/test_lineage_holds.py
PYTEST_ARGS ?= -n auto --dist loadfile --no-loadscope-reorder
BENCH_ARGS ?=
MERGE_BENCH_ARGS ?=
BENCH_ENV := benchmarks/.venv

.PHONY: fuzz mutants help dev check example test coverage test-slow test-needs lint format docs docs-serve wheel bench bench-sources lock clean system-packages picture site-libraries site-test-needs

help:
	@sed -n 's/^#   //p' Makefile

$(VENV)/.made: tools/make_venv
	@tools/make_venv $(VENV)
	@touch $@

# pip compiles what it copies, and leaves a checkout to Python, which may not write there: each start
# would take a quarter longer.
COMPILE = $(BIN)/python -m compileall -q odfbuild

# The sets of packages share one environment: what is locked fits odfbuild's own needs too.
$(VENV)/.example: $(VENV)/.made $(SOURCES)
	@echo "Installing odfbuild with a Java runtime into $(VENV) (a few minutes the first time)"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[spark,jre,tables,delta]'
	@$(COMPILE)
	@touch $@

$(VENV)/.check: $(VENV)/.made requirements/check.lock $(SOURCES)
	@echo "Installing what the quick tests need into $(VENV) (half a minute the first time)"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/check.lock
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --editable .
	@touch $@

$(VENV)/.dev: $(VENV)/.made requirements/dev.lock $(SOURCES)
	@echo "Installing the locked development packages into $(VENV) (a few minutes the first time)"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/dev.lock
	@$(if $(PYSPARK),$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps pyspark==$(PYSPARK))
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --editable .
	@$(COMPILE)
	@touch $@ $(VENV)/.check $(VENV)/.example

dev: $(VENV)/.check

check: $(VENV)/.check
	$(BIN)/python -m pytest -n auto -m "not spark" --hypothesis-profile quick $(CHECK)

example: $(VENV)/.example
	cd example_project && ../$(BIN)/odfbuild apply --auto-approve
	cd example_project && ../$(BIN)/odfbuild ls

system-packages:
	@tools/system_packages git curl nginx mosquitto podman runc zsh fish strace chromium flatc=flatbuffers-compiler psql=postgresql mariadbd=mariadb-server sshd=openssh-server

# Programs that are no packages of Debian, or not to be installed as such.
$(VENV)/.docker: $(VENV)/.made tools/docker_client | system-packages
	@tools/docker_client $(BIN)
	@touch $@

$(VENV)/azurite/package.json: $(VENV)/.made tools/azurite requirements/azurite/package-lock.json
	@tools/azurite $(VENV)/azurite

vendored/LICENSES.txt: tools/site_libraries requirements/site/package-lock.json
	@tools/site_libraries vendored $(VENV)/site

site-libraries: vendored/LICENSES.txt

# Tests of the pages in a browser are skipped without npm, and say so.
site-test-needs: $(VENV)/.made
	@! command -v npm >/dev/null || [ -f $(VENV)/site/axe.min.js -a vendored/LICENSES.txt -nt requirements/site/package-lock.json ] || \
	  tools/site_libraries vendored $(VENV)/site || echo "tests of the site in a browser are skipped" >&2

# All at once: they wait for the network most of the time.
test-needs: $(VENV)/.made
	@$(MAKE) --no-print-directory --silent --jobs=3 $(VENV)/.dev system-packages $(VENV)/.docker $(VENV)/azurite/package.json site-test-needs

test: test-needs
	$(BIN)/python -m pytest $(PYTEST_ARGS)

# What other processes do is not counted. It takes a twentieth more time on Python 3.14, and half as
# much again on older ones: a job of its own, not part of `make test`.
coverage: test-needs
	$(BIN)/python -m pytest $(PYTEST_ARGS) -m "not spark" --cov --cov-report=term

test-slow: test-needs
	$(BIN)/python -m pytest -m slow $(PYTEST_ARGS)

FUZZ_CASES ?= 100000
fuzz: test-needs
	for each in definitions templates queries blocks slices checkpoints heads; do \
	  $(BIN)/python -m tests.fuzz $$each --cases $(FUZZ_CASES) --seed $$(date +%s) || exit 1; done

MUTANTS_ARGS ?= --sample 100
mutants: test-needs tools/requirements-mutants.txt
	@tools/make_venv $(VENV)-mutants
	@$(VENV)-mutants/bin/python -m pip install --quiet --disable-pip-version-check -r tools/requirements-mutants.txt
	$(VENV)-mutants/bin/python tools/mutants.py --python $(BIN)/python $(MUTANTS_ARGS)

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m odfbuild.project.generate --check
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet

format: $(VENV)/.dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# mkdocs looks for links and anchors that lead nowhere, and fails when it finds one.
docs: $(VENV)/.dev
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet

picture: $(VENV)/.example
	$(BIN)/python tools/make_picture.py

docs-serve: $(VENV)/.dev
	$(BIN)/mkdocs serve

wheel: $(VENV)/.made vendored/LICENSES.txt
	$(BIN)/python -m pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir dist .
	@ls dist

# Tools to compare with: each in an environment of its own, for they agree on few versions.
$(BENCH_ENV)-%/.installed: tools/make_venv benchmarks/requirements-%.txt
	@tools/make_venv $(BENCH_ENV)-$*
	@$(BENCH_ENV)-$*/bin/python -m pip install --quiet --disable-pip-version-check -r benchmarks/requirements-$*.txt
	@touch $@

$(BENCH_ENV)/.installed: tools/make_venv benchmarks/requirements.txt
	@tools/make_venv $(BENCH_ENV)
	@$(BENCH_ENV)/bin/python -m pip install --quiet --disable-pip-version-check -r benchmarks/requirements.txt
	@touch $@

bench: $(VENV)/.example $(BENCH_ENV)/.installed $(BENCH_ENV)-sqlmesh/.installed $(BENCH_ENV)-snakemake/.installed
	@tools/system_packages flatc=flatbuffers-compiler nginx
	$(BIN)/python benchmarks/chains.py
	$(BIN)/python benchmarks/git.py
	$(BIN)/python benchmarks/sharing.py
	$(BIN)/python benchmarks/engine.py
	$(BIN)/python benchmarks/ingest.py --duckdb $(BENCH_ENV)/bin/python
	$(BIN)/python benchmarks/merge.py --duckdb $(BENCH_ENV)/bin/python $(MERGE_BENCH_ARGS)
	$(BIN)/python benchmarks/plan.py --dbt $(BENCH_ENV)/bin/dbt \
	  --sqlmesh $(BENCH_ENV)-sqlmesh/bin/sqlmesh --snakemake $(BENCH_ENV)-snakemake/bin/snakemake $(BENCH_ARGS)

bench-sources: $(VENV)/.dev
	@tools/system_packages psql=postgresql
	$(BIN)/python benchmarks/sources.py

# Written by uv without the address of any index, so that it serves every mirror.
LOCK = $(BIN)/uv pip compile pyproject.toml --universal --python-version 3.11 --generate-hashes \
  --no-annotate --no-header --no-emit-index-url --no-emit-find-links --no-strip-extras --quiet
lock: $(VENV)/.dev
	$(BIN)/python -m pip install --quiet --disable-pip-version-check uv
	$(LOCK) --extra dev -o requirements/dev.lock
	$(LOCK) --extra check --constraint requirements/dev.lock -o requirements/check.lock

clean:
	rm -rf .venv .venv-mutants .venv-pyspark-* $(BENCH_ENV) vendored build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache
	rm -rf .hypothesis .import_linter_cache .coverage*
	rm -rf example_project/chains example_project/.odfbuild example_project/.odfbuild-keys
