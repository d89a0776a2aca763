# Two commands are all that a newcomer needs: `make quickstart` and `make test`. Both make their own environment.
PYTHON ?= python3
VENV := .venv
NEWEST := .venv-newest
BIN := $(VENV)/bin
# Python makes bytecode of what it imports, a quarter of all that is installed; pip would make it of everything, in half of its time.
PIP_INSTALL := -m pip install --quiet --disable-pip-version-check --no-compile
PIP := $(BIN)/python $(PIP_INSTALL) --constraint requirements/constraints.txt
unexport PYTHONDONTWRITEBYTECODE

# What the newest transformers, torch and clients of providers may break; without what measures memory, or waits.
NEWEST_TESTS := tests/models/local tests/models/remote/wire $(wildcard tests/models/remote/test_openai*.py) \
  tests/models/remote/test_litellm.py tests/models/remote/test_llamacpp.py tests/models/remote/test_http.py \
  tests/models/remote/batch/test_apis.py \
  $(foreach name,hf/test_memory hf/test_fitting hf/test_small_copy test_processes test_cluster,--ignore=tests/models/local/$(name).py)
# Of the tests that are marked slow: three whole evaluations, brute force, wrong solutions of terminal tasks, and the coverage
# of differences.
SLOW_SAMPLE := tests/end_to_end tests/statistics/test_coverage.py \
  tests/statistics/test_tipping.py::test_the_number_of_unsure_readings_is_that_of_brute_force \
  'tests/tasks/test_terminal_tasks.py::test_scores[wrong-solutions]'
# In the order of the folders: files of few tests are often the longest, and would come last.
PYTEST := -m pytest -n auto --dist loadfile --no-loadscope-reorder

.PHONY: quickstart environment test slow slow-sample newest newest-environment newest-tests collected wheel lint types \
  format explorer site demo-models clean help

help:  ## Show this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

quickstart: $(VENV)/core  ## Evaluate the two embedded models, compare them, write a leaderboard
	$(BIN)/evalwright run factual-choice --model demo/small --model demo/large --name quickstart --replace
	$(BIN)/evalwright leaderboard quickstart-demo-small quickstart-demo-large \
	  --title "Quickstart" --markdown runs/quickstart.md --html runs/quickstart.html > /dev/null
	$(BIN)/evalwright compare quickstart-demo-large quickstart-demo-small --flips 3
	$(BIN)/evalwright view quickstart-demo-large quickstart-demo-small --html runs/explorer.html > /dev/null
	@echo "Open runs/explorer.html in a browser: both models, every question, every answer."

environment: $(VENV)/dev $(VENV)/docs  ## Install what the other commands need

test: $(VENV)/dev  ## Run all tests that are not marked slow
	LM_EVAL_TASKS=$(CURDIR)/$(VENV)/lm_eval/lm_eval/tasks $(BIN)/python $(PYTEST) -m "not slow"

# The bytecode of the tests and of what they import, which each of the processes of `make test` would make at the same time.
collected: $(VENV)/dev
	$(BIN)/python -m pytest --collect-only -qq > $(VENV)/collected || { cat $(VENV)/collected; exit 1; }

slow: $(VENV)/dev  ## Run the tests that are marked slow
	$(BIN)/python $(PYTEST) -m slow

slow-sample: $(VENV)/dev  ## Run a part of the tests that are marked slow, in under a minute
	$(BIN)/python $(PYTEST) -m slow -k "(not covers or difference) and not a_year_of_a_board and not fifty_trajectories" $(SLOW_SAMPLE)

# A warning of a release that came out today fails nothing; a test that it breaks does.
newest: newest-environment  ## The quickstart and tests of local and remote models, with the newest release of everything
	$(MAKE) newest-tests

newest-environment:
	$(PYTHON) -m venv --clear $(NEWEST)
	$(NEWEST)/bin/python $(PIP_INSTALL) torch==2.13.0 --editable '.[hf,hub,parquet,peft,bitsandbytes,bedrock,vertex,mcp,dev]'

newest-tests:
	$(NEWEST)/bin/evalwright run factual-choice --model demo/small --model demo/large --name newest --replace
	$(NEWEST)/bin/evalwright compare newest-demo-large newest-demo-small
	$(NEWEST)/bin/python $(PYTEST) -W default -m "not slow" -k "not memory" $(NEWEST_TESTS)

wheel: $(VENV)/bin/python  ## Build the wheel, check it, and use it in an environment of its own
	$(BIN)/python scripts/check_wheel.py

lint: $(VENV)/dev  ## Check style
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/dev  ## Check types
	$(BIN)/mypy

format: $(VENV)/dev  ## Put the style right
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

explorer:  ## Build the explorer's script and style again (wants Node)
	cd web && npm install --no-audit --no-fund && npm run build

site: $(VENV)/docs  ## Build the documentation site into dist/site
	$(BIN)/python -m scripts.build_site dist/site

demo-models: $(VENV)/dev  ## Train the embedded models again (under 30 minutes on two cores)
	$(BIN)/python -m scripts.demo_models.train

clean:  ## Remove what these commands made
	rm -rf $(VENV) $(NEWEST) runs .evalwright .mypy_cache .ruff_cache .pytest_cache .hypothesis

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/core: $(VENV)/bin/python pyproject.toml requirements/constraints.txt
	$(PIP) --editable .
	@touch $@

$(VENV)/dev: $(VENV)/bin/python pyproject.toml requirements/constraints.txt
	$(PIP) torch==2.13.0 --editable '.[hf,hub,parquet,peft,bitsandbytes,bedrock,vertex,mcp,dev]'
	# The released package apart from ours (so without the extra lm-eval, which has it): its task files for the tests of parity, and, in processes of their own, its classes.
	$(PIP) --no-deps --upgrade --target $(VENV)/lm_eval lm_eval==0.4.13 requests certifi urllib3 charset-normalizer
	@touch $@ $(VENV)/core

$(VENV)/docs: $(VENV)/dev
	$(PIP) --editable '.[docs]'
	@touch $@
