# `make` prints the targets. Everything is installed into .venv; downloads stay in the user's own caches
# (pip's, and ~/.cache/irc-bridge for jars), so a second checkout finds them again.
.DEFAULT_GOAL := help
.PHONY: help demo test test-containers test-lowest test-matrix lint fuzz bench system-java system-chromium
.PHONY: system-bench-tools clean

PORT ?= 8181
# Folders of tests that `make test` shall leave out, because they ran before it.
ALREADY_RUN ?=
# Tests wait for servers and disks for much of their time: one process more than there are processors.
WORKERS ?= $(shell echo $$(($$(nproc 2>/dev/null || echo 1) + 1)))
VENV := .venv
PYTHON := $(shell for name in python3 python3.13 python3.12 python3.11; do \
    "$$name" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1 && { echo "$$name"; break; }; done)

help:  ## print the targets
	@awk -F':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: $(VENV)/.installed  ## serve three small Lance tables on 127.0.0.1:8181 (PORT=8182 chooses another port)
	@$(VENV)/bin/irc-bridge demo --port $(PORT)

test: $(VENV)/.installed-dev system-java system-chromium  ## lint, types and every test that this machine can run
	@$(MAKE) --no-print-directory lint
	$(VENV)/bin/pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder $(addprefix --ignore=,$(ALREADY_RUN))

test-containers: $(VENV)/.installed-dev  ## the images, compose and Kubernetes, where a container engine answers
	$(VENV)/bin/pytest contract_tests/containers

test-matrix: $(VENV)-matrix/.installed system-java  ## the Spark tests with Spark 4.0 and Iceberg 1.10
	ICEBERG_SPARK_RUNTIME=org.apache.iceberg:iceberg-spark-runtime-4.0_2.13:1.10.1 \
	$(VENV)-matrix/bin/pytest contract_tests/engines/test_spark.py contract_tests/engines/test_mirror_spark.py

test-lowest: $(VENV)-lowest/.installed  ## a smoke tier with the lowest versions that pyproject.toml allows
	$(VENV)-lowest/bin/pytest $(LOWEST) -k "not s3 and not irc and not nessie"

LOWEST := $(addprefix contract_tests/,contract/test_tables.py contract/test_version_commits.py cli/test_settings.py \
	mirror/test_versions.py translation)

lint: $(VENV)/.installed-dev  ## ruff and mypy
	$(VENV)/bin/ruff check
	$(VENV)/bin/ruff format --check
	$(VENV)/bin/mypy
	$(VENV)/bin/mypy docker/example.py

fuzz: $(VENV)/.installed-dev  ## 20,000 requests made of the OpenAPI documents (FUZZ_REQUESTS=100000 for more)
	FUZZ_REQUESTS=$${FUZZ_REQUESTS:-20000} $(VENV)/bin/pytest -n $(WORKERS) contract_tests/fuzz

bench: $(VENV)/.installed-dev system-java system-bench-tools  ## the ratios against peers measured in the same run
	$(VENV)/bin/python -m contract_tests.load

clean:  ## remove the virtual environments
	rm -rf $(VENV) $(VENV)-matrix $(VENV)-lowest

# $(call new-venv,FOLDER)
define new-venv
	@test -n "$(PYTHON)" || { echo "irc-bridge needs Python 3.11 or later: install one and run make again." >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { echo "$(PYTHON) has no venv module: \
	install it (on Debian and Ubuntu: apt install python3-venv) and run make again." >&2; exit 1; }
	@test -x $(1)/bin/pip || $(PYTHON) -m venv --clear $(1)
endef

$(VENV)/.installed: pyproject.toml
	$(call new-venv,$(VENV))
	@echo "Installing irc-bridge into $(VENV): the first time this takes a minute or two."
	@$(VENV)/bin/pip install --quiet --disable-pip-version-check -e .
	@touch $@

$(VENV)/.installed-dev: pyproject.toml
	$(call new-venv,$(VENV))
	@echo "Installing irc-bridge and its development tools into $(VENV)."
	@$(VENV)/bin/pip install -qq --upgrade "pip>=25.1"
	@$(VENV)/bin/pip install -qq -e . --group dev
	@touch $(VENV)/.installed $@

$(VENV)-matrix/.installed: pyproject.toml
	$(call new-venv,$(VENV)-matrix)
	@echo "Installing irc-bridge and older engines into $(VENV)-matrix."
	@$(VENV)-matrix/bin/pip install -qq --upgrade "pip>=25.1"
	@$(VENV)-matrix/bin/pip install -qq -e . --group matrix
	@touch $@

$(VENV)-lowest/.installed: pyproject.toml
	$(call new-venv,$(VENV)-lowest)
	@echo "Installing irc-bridge and the lowest versions of its dependencies into $(VENV)-lowest."
	@$(VENV)-lowest/bin/pip install -qq --disable-pip-version-check uv
	@$(VENV)-lowest/bin/uv pip install -q --python $(VENV)-lowest/bin/python --resolution lowest-direct -e . --group test
	@touch $@

# By apt where that can be done without a question; what then is still missing, the tests name themselves.
APT_INSTALL = command -v apt-get >/dev/null && { test $$(id -u) = 0 || sudo -n true; } 2>/dev/null && \
	as_root=$$(test $$(id -u) = 0 || echo sudo -n) && $$as_root apt-get update -qq && \
	$$as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends

system-java:
	@command -v java >/dev/null || { $(APT_INSTALL) openjdk-17-jre-headless || \
	$(APT_INSTALL) openjdk-21-jre-headless || true; } >/dev/null 2>&1

# A browser, for the hostile web page of contract_tests/security.
system-chromium:
	@command -v chromium >/dev/null || command -v chromium-browser >/dev/null || command -v google-chrome >/dev/null || \
	{ $(APT_INSTALL) chromium || true; } >/dev/null 2>&1

system-bench-tools:
	@for tool in wrk strace; do command -v $$tool >/dev/null || { $(APT_INSTALL) $$tool || true; } >/dev/null 2>&1; done
