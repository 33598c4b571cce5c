# What people and the CI call. `make test` works on a fresh clone: it fetches or builds what it needs and keeps it.

CARGO ?= cargo
TARGET_DIR := $(or $(CARGO_TARGET_DIR),target)

# The check of licences, bans and sources. Built unoptimised and without the features that fetch by themselves it costs
# 73 CPU-seconds once (measured), less than writing and keeping our own.
DENY_VERSION := 0.20.2
DENY_ROOT := build/tools/cargo-deny-$(DENY_VERSION)
DENY := $(DENY_ROOT)/bin/cargo-deny

# The end-to-end tests. Each runs on the embedded control plane, but for those that tests/embedded.txt names, and on the
# real one, where `demo` says no more.
E2E := $(shell sed -n '/^\[\[test\]\]/,/^name/s/^name = "\(.*\)"/\1/p' tests/Cargo.toml)
ON_REAL := $(filter-out demo,$(E2E)) $(basename $(notdir $(wildcard tests/controlplane/tests/*.rs)))
LEFT_OUT := $(shell sed -n '/^\#/d;s/^\([a-z0-9_:]*\): .*/\1/p' tests/embedded.txt)

# Whether the real control plane can be had: its programs, or Go to build them.
REAL := $(if $(or $(KUBEBUILDER_ASSETS),$(shell command -v go),$(wildcard build/controlplane/v*)),yes)
# The facts about Kubernetes come from its Go modules too.
FRESH := $(if $(shell command -v go),fresh)

# $(call step,what it is,command): says what begins, and how long it took.
step = @echo "==> $(1)"; began=$$(date +%s); $(2) || exit 1; echo "==> $(1): done in $$(($$(date +%s) - began)) s"

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help generate build test fmt clippy unit licences e2e e2e-embedded conformance fresh left-out bench advisories clean

help: ## Say what there is
	@sed -n 's/^\([a-z0-9-]*\):.*## /\1|/p' $(MAKEFILE_LIST) | awk -F'|' '{ printf "  make %-13s %s\n", $$1, $$2 }'

generate: ## Write CRDs, roles and the test matrix from the code
	$(CARGO) xtask gen

build: ## Build the release binary, ./bin/machine-api-operator
	$(call step,release build,$(CARGO) build --locked --release --package machine-api-operator)
	@mkdir -p bin && cp $(TARGET_DIR)/release/machine-api-operator bin/machine-api-operator

test: fmt clippy unit licences e2e-embedded conformance $(if $(REAL),e2e,left-out) $(FRESH) ## Check everything

fmt: ## Check the format
	$(call step,format,$(CARGO) fmt --all --check)

clippy: ## Lint
	$(call step,lints,$(CARGO) clippy --locked --workspace --all-targets -- -D warnings)

unit: ## Run all tests that need no server; among them: generated files are fresh, the house is tidy
	$(call step,tests,$(CARGO) test --locked --workspace --exclude e2e --exclude controlplane)

licences: $(DENY) ## Check licences, banned crates and sources
	$(call step,licences,$(DENY) check licenses bans sources)

# By name in the whole workspace: a package by itself has other features, and all below it would be built again.
e2e: ## Run the tests on a real control plane, which is built on first use
	$(call step,control plane,hack/controlplane.sh)
	$(call step,the program under test,$(CARGO) build --locked --workspace --bin machine-api-operator)
	$(call step,end-to-end tests,$(CARGO) test --locked --workspace $(addprefix --test ,$(ON_REAL)))

# What the embedded control plane knows of Kubernetes is that of the version that the tests run on.
fresh: ## Compare generated facts about Kubernetes with the real control plane and its Go modules
	$(call step,facts about Kubernetes,$(CARGO) xtask devplane-schemas --check && $(CARGO) xtask devplane-wire --check)

e2e-embedded: ## Run the same on the embedded control plane, which needs nothing
	$(call step,the program under test,$(CARGO) build --locked --workspace --bin machine-api-operator)
	$(call step,end-to-end tests on the embedded control plane,E2E_PLANE=embedded \
		$(CARGO) test --locked --workspace $(addprefix --test ,$(E2E)) -- $(addprefix --skip ,$(LEFT_OUT)))

conformance: ## Ask the real API server and ours the same, with requests, kubectl and the Python client
	$(if $(REAL),$(call step,control plane,hack/controlplane.sh))
	@rm -f build/conformance-*.txt
	$(call step,conformance,$(CARGO) test --locked --no-fail-fast --workspace --test conformance_devplane \
		$(if $(REAL),--test conformance_real); result=$$?; cat build/conformance-*.txt; (exit $$result))

# The last lines of `make test` where the real control plane is missing.
left-out:
	@echo "==> left out, as there is no Go to build the real control plane with:"
	@echo "    make e2e          the end-to-end tests on it; these run nowhere else (tests/embedded.txt says why):"
	@printf '                        %s\n' $(LEFT_OUT)
	@echo "    make conformance  its half of the conformance suite"
	@echo "    To run them, install Go 1.26 or newer, or set KUBEBUILDER_ASSETS to a folder with"
	@echo "    etcd, kube-apiserver, kube-controller-manager and kube-scheduler; then \`make test\`."

# Optimised, or the bare loop that the product is compared with would be slower than it has to be.
bench: build ## Measure writes, CPU and memory for each machine
	$(CARGO) run --quiet --locked --release --package xtask -- bench

advisories: $(DENY) ## Ask the advisory database, where it can be reached
	$(DENY) check advisories

clean: ## Remove what was built, but for the control plane and tools in build/
	$(CARGO) clean
	rm -rf bin

$(DENY):
	$(call step,cargo-deny $(DENY_VERSION) (once),CARGO_PROFILE_DEV_DEBUG=0 $(CARGO) install cargo-deny --locked \
		--version $(DENY_VERSION) --debug --no-default-features --root $(DENY_ROOT))
