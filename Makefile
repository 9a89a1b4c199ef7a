# The short way to everything; `make help` lists it. Each target is a few cmake calls, and cmake
# can be called directly just as well (see CMakePresets.json).

# CUDA when the compiler and CUDA sources are there, else CPU only. Any preset may be named:
# make PRESET=tsan test
PRESET ?= $(if $(and $(shell command -v nvcc 2>/dev/null),$(wildcard modules/*/*/*.cu modules/*/*/cuda/*.cu)),cuda,cpu)
JOBS ?= $(shell nproc)
PREFIX ?= /usr/local
# Warnings are errors here; WERROR=OFF helps with a compiler that warns of more than ours does.
WERROR ?= ON
# What `make bench` runs, and with which arguments.
BENCH ?= fz_bench
ARGS ?=
# Where `make demo` leaves its files; empty means a folder that the demo chooses.
DEMO_OUT ?=
# Whether what is installed and packaged has the CUDA backend.
CUDA ?= $(if $(filter cuda,$(PRESET)),ON,OFF)
# What `make test` compiles otherwise than a build that is used: kernels where no device runs them,
# and the checks of sanitizers that `make sanitizers` has. See cmake/FzOptions.cmake.
UNOPTIMIZED ?= OFF
LESS ?= OFF
# Folder with the fields of `make exam`; empty means made ones.
FIELDS ?=
# Goals of tools/trust that `make test-long` runs; empty means all.
TRUST ?=
# What `make lint` compares with to find changed files; empty means what tools/tidy finds.
BASE ?=

BUILD := build/$(PRESET)
# Asked when it is used: tools/setup may have just installed it. The setting lets it keep what is
# compiled with precompiled headers.
LAUNCHER := 'env;CCACHE_SLOPPINESS=pch_defines,time_macros;ccache'
CCACHE = $(if $(shell command -v ccache 2>/dev/null),$(foreach language,CXX CUDA,-DCMAKE_$(language)_COMPILER_LAUNCHER=$(LAUNCHER)))
CONFIGURE = cmake -DFZ_WERROR=$(WERROR) -DFZ_PCH=ON -DFZ_UNOPTIMIZED_KERNELS=$(UNOPTIMIZED) \
            -DFZ_SANITIZE_LESS=$(LESS) $(CCACHE) --preset
CTEST := ctest --output-on-failure --no-tests=error --parallel $(JOBS)
# Runs tests of a build folder; those that fail are named once more at the end.
run_tests = $(CTEST) --test-dir $(1) $(2) || { tools/test_summary $(1); exit 1; }
SOURCES = $(wildcard $(shell git ls-files '*.h' '*.c' '*.cc' '*.cpp' '*.cu' '*.cuh'))

.DEFAULT_GOAL := help
.PHONY: help setup configure build demo test asan test-long sanitizers bench exam site install wheel package format \
        lint tidy release-check clean

help:  ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-13s %s\n", $$1, $$2 }' Makefile
	@echo "Variables: PRESET=$(PRESET) JOBS=$(JOBS) PREFIX=$(PREFIX) WERROR=$(WERROR)"

setup:
	@tools/setup

configure: setup
	$(CONFIGURE) $(PRESET)

build: configure  ## library, command line tool, examples and tests, into build/<preset>/
	cmake --build $(BUILD) --parallel $(JOBS)

# Only what the tour needs: the tests are most of a build.
demo: configure  ## a short tour on data that it makes itself
	cmake --build $(BUILD) --parallel $(JOBS) --target fz_demo fz_cli
	tools/demo $(BUILD) $(DEMO_OUT)

# The sanitizers follow the ordinary tests; a run with a sanitizer preset is one already.
SANITIZED := $(if $(filter cpu cuda,$(PRESET)),asan)
test:  ## all that a change can break: source rules, format, tests, core tests under sanitizers
	@tools/setup tests
	$(MAKE) --no-print-directory UNOPTIMIZED=$(if $(wildcard /dev/nvidia0),OFF,ON) lint build
	$(call run_tests,$(BUILD),--label-exclude '^long$$')
	$(if $(SANITIZED),$(MAKE) --no-print-directory LESS=ON asan)
	tools/test_summary $(BUILD) $(SANITIZED:%=build/%)

asan: setup  ## the core tests alone under address and UB sanitizers
	$(CONFIGURE) asan
	cmake --build build/asan --parallel $(JOBS) --target fz_core_tests
	$(call run_tests,build/asan,--label-regex '^core$$')

# What moved here, and why, stands in CONTRIBUTING.md.
test-long:  ## what takes hours: the wheel, all tests under sanitizers, release-size trust, clang-tidy
	@tools/setup tests
	$(MAKE) --no-print-directory build
	$(call run_tests,$(BUILD),--label-regex '^long$$')
	$(MAKE) --no-print-directory sanitizers
	$(MAKE) --no-print-directory tidy
	$(MAKE) --no-print-directory site
	tools/trust --release $(TRUST)
	tools/test_summary $(BUILD) build/asan build/tsan

sanitizers: setup  ## all tests under address and UB sanitizers, and under the thread sanitizer
	for preset in asan tsan; do \
	  $(CONFIGURE) $$preset && cmake --build build/$$preset --parallel $(JOBS) || exit 1; \
	  $(call run_tests,build/$$preset,); \
	done

bench: build  ## speed of every stage and preset: make bench ARGS="--only RZE"
	$(BUILD)/bin/$(BENCH) $(ARGS)

exam: build  ## fz beside its peers from PyPI: make exam FIELDS=folder (docs/exam.md)
	tools/exam_environment $(BUILD) $(FIELDS)

site:  ## the documents as a searchable site, into build/site/html
	@tools/setup
	tools/site build/site

# What users run and link, optimised, in a build folder of its own: no tests, no examples.
# A warning that another compiler has stops nobody from installing.
RELEASE = $(CONFIGURE) release -DFZ_CUDA=$(CUDA) -DFZ_WERROR=OFF
install: setup  ## into PREFIX (and DESTDIR, where set); CUDA=OFF leaves the GPU out
	$(RELEASE)
	cmake --build build/release --parallel $(JOBS)
	DESTDIR="$(DESTDIR)" cmake --install build/release --prefix "$(PREFIX)"

wheel: setup  ## a Python wheel with all it needs inside, into build/wheel; FZ_CUDA=ON with the GPU
	tools/wheel build/wheel

package: setup  ## what a release ships, into build/packages; CUDA=OFF leaves the GPU out
	tools/package -DFZ_CUDA=$(CUDA)

format:  ## all C++ and CUDA sources, with clang-format 14
	clang-format -i $(SOURCES)

lint: configure  ## source rules, the format, and clang-tidy on what changed
	tools/check_forbidden.py
	@if clang-format --version 2>/dev/null | grep -q 'version 14\.'; then \
	  clang-format --dry-run -Werror $(SOURCES) && echo "lint: the format is right"; \
	else \
	  echo "lint: no clang-format 14, format not checked"; \
	fi
	tools/tidy $(if $(BASE),--base $(BASE)) $(BUILD)

tidy: configure  ## clang-tidy on all sources
	tools/tidy --all $(BUILD)

release-check:  ## whether this commit can be released (docs/releasing.md)
	tools/release_check
	$(MAKE) --no-print-directory test
	$(MAKE) --no-print-directory test-long
	$(MAKE) --no-print-directory package
	tools/release_check

clean:  ## removes build/
	rm -rf build
