# Everything lives in .venv; nothing global is touched. `make run` and `make test` are all the set-up there is.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
export PYRIGHT_PYTHON_CACHE_DIR := $(CURDIR)/$(VENV)/pyright
export PYRIGHT_PYTHON_IGNORE_WARNINGS := 1
export PIP_DISABLE_PIP_VERSION_CHECK := 1
# The tests start the program some hundred times: without bytecode a start takes 0.70 s of CPU, with it 0.50 s.
unexport PYTHONDONTWRITEBYTECODE
SOURCES = $(wildcard *.py */)

.PHONY: run mesh test test-every test-ci stress grid lint format command-files release-check dist screenshots bench bench-docs costs lock clean

# The app on loopback; without a terminal, a 5 s test and its summary.
run: $(VENV)/run.stamp
	@$(BIN)/python -m linkgauge $(ARGS)

# Every pair of eight hosts, which are emulated on this machine, as a map.
mesh: $(VENV)/mesh.stamp
	@$(BIN)/python -m linkgauge mesh --local 8 $(ARGS)

# Several tests at a time, then the tests that measure: three modules of them at a time, as they wait far more than they work; with test-every
# one test alone. What fails is tried once more by itself, and more than 3 rescued so fail the run. The first pass leaves assertions as
# they are: to rewrite them in a fresh clone takes each process as long as to import everything, and the second pass has them.
# test-every also runs what takes long, both event loops, every screen size, more examples and the whole truth matrix.
# ARGS goes to one plain pytest instead: make test ARGS="-k window".
test: $(VENV)/dev.stamp
ifdef ARGS
	$(BIN)/python -m pytest $(ARGS)
else
	@$(BIN)/python -m compileall -q -j 0 $(SOURCES)
	$(BIN)/python -m pytest -q -n 6 --dist worksteal $(or $(EVERY),--assert=plain) -m "not alone" || \
	  $(BIN)/python -m pytest -q $(EVERY) --rescue -m "not alone"
	alone=$$(grep -rlE "mark\.alone" tests --include="test_*.py"); \
	  $(BIN)/python -m pytest -q $(or $(EVERY),-n 3 --dist loadfile) -m alone $$alone || \
	  $(BIN)/python -m pytest -q $(EVERY) --rescue -m alone $$alone
endif

test-every: EVERY := --every
test-every: test

# What .ci/run carries out: each test, and a quarter of the further ones of test-every. The commit decides which.
test-ci: EVERY := --every --share 4
test-ci: test

# Attackers, broken inputs, a day of samples and an hour of faults. ARGS names one script of stress, with its options:
# make stress ARGS="fuzz --inputs 2000000".
stress: $(VENV)/dev.stamp
ifdef ARGS
	$(BIN)/python stress/$(firstword $(ARGS)).py $(wordlist 2,$(words $(ARGS)),$(ARGS))
else
	@status=0; for script in attacks fuzz day soak; do $(BIN)/python stress/$$script.py || status=1; done; exit $$status
endif

lint: $(VENV)/dev.stamp
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright
	$(BIN)/lint-imports

format: $(VENV)/dev.stamp
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# Manual pages and shell completions, after a change of the command line.
command-files: $(VENV)/dev.stamp
	$(BIN)/python packaging/command_files.py

# Whether this commit can be released: version, changelog, tree, packages, their metadata, and every command of the documents.
release-check: $(VENV)/dev.stamp
	$(BIN)/python packaging/release_check.py

# Wheel, sdist, the endpoint in one file, its Debian package, recipes for packagers, and checksums, into dist/.
# A release gives its address: make dist ARGS="--repository https://HOST/OWNER/linkgauge".
dist: $(VENV)/dev.stamp
	$(BIN)/python packaging/dist.py $(ARGS)

# Pictures of real runs on a link that it emulates itself, as PNG, into screenshots/. One that moves, as GIF:
# make screenshots ARGS="--only moving".
screenshots: $(VENV)/dev.stamp
	$(BIN)/python screenshots/make.py $(ARGS)

# linkgauge against every other tester on PATH, into bench/results.
bench: $(VENV)/dev.stamp
	$(BIN)/python bench/run.py $(ARGS)

# The tables of README and docs/benchmarks.md, from the results of one whole benchmark.
bench-docs: $(VENV)/dev.stamp
	$(BIN)/python bench/documents.py $(ARGS)

# What linkgauge costs as work grows: saved runs, presets, long runs, sessions. Less with ARGS="--only history --short".
costs: $(VENV)/dev.stamp
	@$(BIN)/python bench/costs.py $(ARGS)

# Links with one known cause each, drawn from a seed, and how often the first finding is right.
grid: $(VENV)/dev.stamp
	$(BIN)/python stress/grid.py $(ARGS)

# Newest versions that pyproject.toml allows, with hashes, for every platform.
lock:
	$(PYTHON) -m venv $(VENV)-lock
	$(VENV)-lock/bin/pip install -q uv
	$(VENV)-lock/bin/uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-header \
	  --no-emit-index-url --no-annotate --upgrade --group build pyproject.toml -o locks/run.txt
	$(VENV)-lock/bin/uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-header \
	  --no-emit-index-url --no-annotate --upgrade --constraint locks/run.txt --group dev pyproject.toml -o locks/dev.txt
	$(VENV)-lock/bin/uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-header \
	  --no-emit-index-url --no-annotate --upgrade --constraint locks/dev.txt --group build --extra mesh pyproject.toml -o locks/mesh.txt
	rm -rf $(VENV)-lock

clean:
	rm -rf $(VENV) $(VENV)-lock build dist *.egg-info .pytest_cache .ruff_cache .hypothesis snapshot_report.html

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "linkgauge needs Python 3.11 or newer; name one with: make PYTHON=python3.12")'
	$(PYTHON) -m venv $(VENV)

$(VENV)/run.stamp: locks/run.txt pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install -q --require-hashes -r locks/run.txt
	$(BIN)/python -m pip install -q --no-deps --no-build-isolation --editable .
	@touch $@

$(VENV)/mesh.stamp: locks/mesh.txt $(VENV)/run.stamp
	$(BIN)/python -m pip install -q --require-hashes -r locks/mesh.txt
	@touch $@

# locks/dev.txt has all of locks/run.txt. The packages that only a few tests import stay without bytecode: to compile
# them takes as long as all others.
$(VENV)/dev.stamp: locks/run.txt locks/dev.txt pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install -q --no-compile --require-hashes -r locks/dev.txt
	$(BIN)/python -m pip install -q --no-compile --no-deps --no-build-isolation --editable .
	$(BIN)/python -m compileall -q -j 0 -x '/(fontTools|matplotlib|mpl_toolkits|numpy|PIL|pip|setuptools)/' $(VENV)/lib
	@touch $(VENV)/run.stamp $@
