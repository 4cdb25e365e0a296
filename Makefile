# make quickstart | train-demo | test | soak | docs | bench | quality | lint | stubs | build | wheel | release-check: each sets up all it needs.
#
# .venv         the package in place (editable), the tools that build and lint
# .venv-train   the newest torch and PyG, and Ray (6 GB), the package as an installed wheel; for `make test`, `make train-demo` and `make docs`
# .venv-dgl     DGL 2.1.0 and what it is pinned to (6 GB), the wheel; for the tests of `distdgl` and of the exports
# .venv-oldest  torch 2.4, the wheel; for `make test-oldest`
#
# TIDY=1 removes the last three after their tests.
#
# Needed beforehand: cargo of Rust 1.95 or newer, Python 3.11 or newer with its venv module, a C compiler to link with.
# .venv-dgl and .venv-oldest take PYTHON_3_11: what DGL is pinned to has no wheels for newer ones, the oldest torch hardly any.
# With Chromium, the tests also open the report in it.

PYTHON ?= $(shell command -v python3.11 || command -v python3)
PYTHON_3_11 ?= $(shell command -v python3.11 || echo "$(PYTHON)")

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:
.DEFAULT_GOAL := build
.PHONY: quickstart train-demo docs linkcheck test test-rust test-rust-built test-core test-train test-dgl test-oldest soak bench quality lint lint-rust lint-python stubs build wheel release-check release-state clean machine

VENV := .venv/bin
TRAIN := .venv-train/bin
CORE := python/fastpart/_core.abi3.so
RUST := Cargo.toml Cargo.lock rust/python/Cargo.toml pyproject.toml README.md $(shell find rust -name '*.rs')
PACKAGE := $(shell find python -name '*.py' -o -name '*.pyi' -o -name '*.j2' -o -name options.json -o -name py.typed)
PYTEST := -m pytest -n 2 --dist worksteal --durations 25 --durations-min 5
INSTALL := -m pip install --quiet
SPHINX := $(TRAIN)/python -m sphinx --quiet --nitpicky --fail-on-warning --keep-going --fresh-env -d target/doctrees

# One interpreter for every build of the extension module, so that cargo does not build it anew for each tool.
export PYO3_PYTHON := $(CURDIR)/$(VENV)/python

# `make -j` says how many targets are made at a time. Cargo would take it for the number of its own jobs.
unexport MAKEFLAGS MFLAGS

# A process that finds no bytecode compiles what it imports anew: `fastpart --help` takes 0.9 s then instead of 0.3 s, and
# the tests start thousands of processes. Some images forbid to write it.
unexport PYTHONDONTWRITEBYTECODE

quickstart: build
	$(VENV)/python examples/quickstart.py

train-demo: .venv-train/.package
	$(TRAIN)/python examples/train_demo.py

# Runs the tutorials, and lets no warning pass. Without network.
docs: .venv-train/.docs
	rm -rf target/site
	$(SPHINX) -b html docs target/site

linkcheck: .venv-train/.docs
	$(SPHINX) -D nb_execution_mode=off -D suppress_warnings=myst-nb.lexer -b linkcheck docs target/linkcheck

build: $(CORE)

test: test-rust test-core test-train test-dgl

test-rust: | machine
	cargo test --locked

test-rust-built: | machine
	cargo test --locked --no-run

test-core: build
	$(VENV)/python $(PYTEST)

# Tests of modules that skip without torch or Ray, and of those that skip without DGL or the pinned PyG: tests/conftest.py.
# Others do not name the library, and need not be collected, which takes each process of pytest seconds.
test-train: MARK := (torch or ray) and not dgl
test-train: NAMED := torch\|importorskip("ray
test-oldest: MARK := torch and not dgl
test-oldest: NAMED := torch
test-dgl: MARK := dgl
test-dgl: NAMED := dgl\|torch_geometric.dist
test-train test-dgl test-oldest: test-%: .venv-%/.package
	.venv-$*/bin/python $(PYTEST) -m "$(MARK) and not slow and not soak" \
		$$(grep -rl --include='test_*.py' '$(NAMED)' tests)
	$(if $(filter dgl,$*),$(PYTHON) tools/dgl_digest.py > tests/dgl.digest)
	$(if $(TIDY),rm -rf .venv-$*)

# The cases that `make test` leaves out, and new examples for property tests.
soak: .venv-train/.package
	HYPOTHESIS_PROFILE=search $(TRAIN)/python $(PYTEST) -m "soak and not dgl"

bench: build
	cargo bench --locked
	$(VENV)/python benches/run.py
	if [ -e .venv-dgl/.package ]; then .venv-dgl/bin/python benches/export.py; fi

quality: build
	$(VENV)/python benches/quality.py --all-peers

lint: lint-rust lint-python

# As a release, so that macros and build scripts are those of the build, which goes first since more waits for it.
lint-rust: build
	@cargo fmt --version >/dev/null 2>&1 && cargo clippy --version >/dev/null 2>&1 || \
		{ echo 'make: rustfmt or clippy is missing; run: rustup component add rustfmt clippy' >&2; exit 1; }
	cargo fmt --check
	cargo clippy --release --locked --workspace --all-targets -- -D warnings

lint-python: build
	$(VENV)/ruff check
	$(VENV)/ruff format --check
	$(VENV)/python tools/prose.py
	$(VENV)/mypy
	$(VENV)/python tools/page_types.py
	$(VENV)/python -m mypy.stubtest fastpart._core

stubs: build
	$(VENV)/python tools/stubs.py
	$(VENV)/ruff format --quiet $$(git ls-files --cached --others --exclude-standard 'python/*.pyi')
	$(VENV)/python tools/command_line.py

# What is released: a source distribution, and built from it a wheel for every Linux with glibc 2.17, against which zig
# links. arm64 is cross-compiled: rustup target add aarch64-unknown-linux-gnu.
TARGETS ?= x86_64-unknown-linux-gnu
wheel: .venv/.wheel build
	rm -rf dist
	for target in $(TARGETS); do \
		PATH=$(CURDIR)/$(VENV):$$PATH maturin build --sdist --zig --compatibility manylinux2014 --release --locked \
			--target $$target --out dist; \
	done
	$(VENV)/python -m pytest -m slow -rA tests/test_packages.py

# What must be true before a release. The environments show the licences of what users install with us.
release-check: release-state wheel docs

release-state: .venv/.installed .venv-train/.installed .venv-dgl/.installed
	$(VENV)/python tools/release_check.py

clean:
	rm -rf .venv .venv-* dist target $(CORE)

machine:
	@cargo --version >/dev/null 2>&1 || \
		{ echo 'make: cargo is missing; install Rust 1.95 or newer' >&2; exit 1; }
	@command -v cc >/dev/null || { echo 'make: cc is missing; install a C compiler, e.g. gcc' >&2; exit 1; }
	@"$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || \
		{ echo 'make: "$(PYTHON)" is not Python 3.11 or newer; run: make PYTHON=/path/to/python3.11' >&2; exit 1; }
	@"$(PYTHON)" -c 'import ensurepip, venv' 2>/dev/null || \
		{ echo 'make: Python lacks venv or ensurepip; install e.g. the package python3.11-venv' >&2; exit 1; }

.venv/.installed: tests/requirements.txt tests/requirements-common.txt | machine
	"$(PYTHON)" -m venv .venv
	$(VENV)/python $(INSTALL) -r $<
	touch $@

.venv-dgl/.installed .venv-oldest/.installed: BASE = $(PYTHON_3_11)
.venv-%/.installed: tests/requirements-%.txt tests/requirements-common.txt | machine
	"$(or $(BASE),$(PYTHON))" -m venv .venv-$*
	.venv-$*/bin/python $(INSTALL) -r $<
	touch $@

$(CORE): .venv/.installed $(RUST)
	PIP_QUIET=1 VIRTUAL_ENV=$(CURDIR)/.venv $(VENV)/maturin develop --release --locked
	touch $@

.venv/.wheel: tests/requirements-wheel.txt .venv/.installed
	$(VENV)/python $(INSTALL) -r $<
	touch $@

# The wheel of the environments below, for this machine alone: cargo has built all of it for .venv. `make wheel` links
# otherwise and compiles anew.
target/wheels/.built: $(CORE) $(PACKAGE)
	rm -rf target/wheels
	$(VENV)/maturin build --release --locked --interpreter $(PYO3_PYTHON) --out target/wheels
	touch $@

.PRECIOUS: .venv-%/.installed .venv-%/.package
.venv-%/.package: .venv-%/.installed target/wheels/.built
	.venv-$*/bin/python $(INSTALL) --force-reinstall --no-deps target/wheels/fastpart-*.whl
	touch $@

.venv-train/.docs: tests/requirements-docs.txt .venv-train/.package
	$(TRAIN)/python $(INSTALL) -r $<
	touch $@
