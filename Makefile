# The short way to everything; `make help` lists it. Each target is a few cmake calls, and cmake
# can be called directly just as well (see CMakePresets.json).

# CUDA when the compiler and CUDA sources are there, else CPU only. Any preset may be named:
# make PRESET=tsan test
PRESET ?= $(if $(and $(shell command -v nvcc 2>/dev/null),$(wildcard modules/*/*/*.cu)),cuda,cpu)
JOBS ?= $(shell nproc)
PREFIX ?= /usr/local
# Warnings are errors here; WERROR=OFF helps with a compiler that warns of more than ours does.
WERROR ?= ON
# What `make bench` runs, and with which arguments.
BENCH ?= fz_bench
ARGS ?=
# Where `make demo` leaves its files; empty means a folder that the demo chooses.
DEMO_OUT ?=

BUILD := build/$(PRESET)
# Asked when it is used: `make setup` may have just installed it.
CCACHE = $(if $(shell command -v ccache 2>/dev/null),-DCMAKE_CXX_COMPILER_LAUNCHER=ccache -DCMAKE_CUDA_COMPILER_LAUNCHER=ccache)
CTEST := ctest --output-on-failure --no-tests=error --parallel $(JOBS)
# Runs tests of a build folder; those that fail are named once more at the end.
run_tests = $(CTEST) --test-dir $(1) $(2) || { tools/test_summary $(1); exit 1; }
SOURCES = $(shell git ls-files '*.h' '*.c' '*.cc' '*.cpp' '*.cu' '*.cuh')

.DEFAULT_GOAL := help
.PHONY: help setup configure build demo test asan bench install format lint clean

help:  ## this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-8s %s\n", $$1, $$2 }' Makefile
	@echo "Variables: PRESET=$(PRESET) JOBS=$(JOBS) PREFIX=$(PREFIX) WERROR=$(WERROR)"

setup:
	@tools/setup

configure: setup
	cmake --preset $(PRESET) -DFZ_WERROR=$(WERROR) $(CCACHE)

build: configure  ## library, command line tool, examples and tests, into build/<preset>/
	cmake --build $(BUILD) --parallel $(JOBS)

# Only what the tour needs: the tests are most of a build.
demo: configure  ## a short tour on data that it makes itself
	cmake --build $(BUILD) --parallel $(JOBS) --target fz_demo fz_cli
	tools/demo $(BUILD) $(DEMO_OUT)

# The sanitizers follow the ordinary tests; a run with a sanitizer preset is one already.
SANITIZED := $(if $(filter cpu cuda,$(PRESET)),asan)
test:  ## source rules, all tests, and the core tests under address and UB sanitizers
	@tools/setup tests
	tools/check_forbidden.py
	$(MAKE) --no-print-directory build
	$(call run_tests,$(BUILD))
	$(if $(SANITIZED),$(MAKE) --no-print-directory asan)
	tools/test_summary $(BUILD) $(SANITIZED:%=build/%)

asan: setup  ## the core tests alone under address and UB sanitizers
	cmake --preset asan -DFZ_WERROR=$(WERROR) $(CCACHE)
	cmake --build build/asan --parallel $(JOBS) --target fz_core_tests
	$(call run_tests,build/asan,--label-regex '^core$$')

bench: build  ## speed of every stage and preset: make bench ARGS="--only RZE"
	$(BUILD)/bin/$(BENCH) $(ARGS)

install: build  ## into PREFIX (and DESTDIR, where set)
	DESTDIR="$(DESTDIR)" cmake --install $(BUILD) --prefix "$(PREFIX)"

format:  ## all C++ and CUDA sources, with clang-format 14
	clang-format -i $(SOURCES)

lint: setup  ## source rules and, where clang-format is there, the format
	tools/check_forbidden.py
	@if command -v clang-format >/dev/null; then \
	  clang-format --dry-run -Werror $(SOURCES); \
	else \
	  echo "lint: no clang-format, format not checked"; \
	fi

clean:  ## removes build/
	rm -rf build
