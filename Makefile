# nvtune's own commands; `make help` lists them. GNU make, bash, Python 3, cargo; an nvcc is found or got (.ci/toolkit.py).

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-builtin-rules

CARGO ?= cargo
PYTHON ?= python3
PREFIX ?= /usr/local
DESTDIR ?=
CARGO_TARGET_DIR ?= target
export PYTHONDONTWRITEBYTECODE := 1

# With GLIBC=2.17 the release binary runs with that glibc and newer ones. cargo-zigbuild links it then.
GLIBC ?=
TARGET := $(shell uname -m)-unknown-linux-gnu
RELEASE := $(CARGO_TARGET_DIR)/$(if $(GLIBC),$(TARGET)/)release/nvtune
EVAL := $(CARGO_TARGET_DIR)/release/nvtune-eval
# The nvtune that scripts run: the one named, else the one that cargo makes.
NVTUNE_BINARY ?=
NVTUNE := $(or $(NVTUNE_BINARY),$(RELEASE))
# What records and judges whole spaces (kernels/eval); the same holds for it.
NVTUNE_EVAL_BINARY ?=
NVTUNE_EVAL := $(or $(NVTUNE_EVAL_BINARY),$(EVAL))
# A recipe's first line: every program that it starts finds the real nvcc.
FIND_NVCC = NVTUNE_NVCC="$$($(PYTHON) .ci/toolkit.py)"; export NVTUNE_NVCC
# The architecture of this machine's GPU, sm_90 without one.
ARCH ?= $(or $(shell nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2>/dev/null | sed -n '1s/^\([0-9]*\)\.\([0-9]\)$$/sm_\1\2/p'),sm_90)

.PHONY: help build build-eval toolkit demo test test-full test-faults lint checks fuzz test-gpu bench-gpu bench bench-dispatch bench-model eval eval-constants docs man install deb wheel archive clean

help: ## what there is to make
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' $(firstword $(MAKEFILE_LIST)) | expand -t 20

build: ## the release binary (none is built when NVTUNE_BINARY names one)
	@$(if $(NVTUNE_BINARY),test -x '$(NVTUNE_BINARY)' || { echo 'make: NVTUNE_BINARY is no program' >&2; exit 1; },$(if $(GLIBC),command -v cargo-zigbuild >/dev/null || { echo 'make: GLIBC=$(GLIBC) needs cargo-zigbuild: pip install cargo-zigbuild ziglang' >&2; exit 1; }; $(CARGO) zigbuild --release --locked --target $(TARGET).$(GLIBC),$(CARGO) build --release --locked))

build-eval: ## what records and judges whole spaces, kernels/eval (none is built when NVTUNE_EVAL_BINARY names one)
	@$(if $(NVTUNE_EVAL_BINARY),test -x '$(NVTUNE_EVAL_BINARY)' || { echo 'make: NVTUNE_EVAL_BINARY is no program' >&2; exit 1; },$(CARGO) build --release --locked -p nvtune-eval)

toolkit: ## an nvcc: the installed one, else one in .toolkit/
	@$(PYTHON) .ci/toolkit.py

demo: build toolkit ## build the N-body kernel through nvtune, and show what the build gets
	@$(FIND_NVCC)
	rm -rf demo
	mkdir -p demo/bin
	ln -s '$(abspath $(NVTUNE))' demo/bin/nvcc
	export PATH="$$PWD/demo/bin:$$PATH"
	# A toolkit put together from packages keeps its libraries where nvcc does not look.
	root=$${NVTUNE_NVCC%/bin/*}
	libraries=$$(if [[ ! -e $$root/lib64 && -e $$root/lib ]]; then echo "-L$$root/lib"; fi)
	say() { printf '\n$$ %s\n' "$$*"; "$$@"; }
	say nvcc -O3 -arch=$(ARCH) -c kernels/nbody/nbody.cu -o demo/nbody.o
	say cat demo/nbody.tune.h
	say demo/bin/nvcc -arch=$(ARCH) demo/nbody.o $$libraries -o demo/nbody
	say '$(NVTUNE)' report demo/nbody.tune.json
	if nvidia-smi -L >/dev/null 2>&1; then say demo/nbody --check; fi
	printf '\nobject  demo/nbody.o\nheader  demo/nbody.tune.h\nrecord  demo/nbody.tune.json\n'

test: toolkit ## all quick checks, without a GPU: format, lints, scripts, tests
	@$(FIND_NVCC)
	export CARGO='$(CARGO)'
	.ci/quick.py

# One or more parts alone: make test-full PARTS="conformance kills". Their names are in .ci/full.py.
# NVTUNE_PROJECTS, NVTUNE_TOOLS: see tests/drop_in/README.md.
PARTS ?=

test-full: toolkit ## the long tests, or PARTS of them; outcomes are kept in tests/FULL.txt
	@$(FIND_NVCC)
	export CARGO='$(CARGO)'
	.ci/full.py $(PARTS)

test-faults: toolkit ## more than 1,000 builds, each with a system call that fails; the outcome is kept in tests/FULL.txt
	@$(FIND_NVCC)
	export CARGO='$(CARGO)'
	.ci/full.py faults

lint:
	@$(CARGO) fmt --check
	$(CARGO) clippy --locked --workspace --all-targets --test gpu -- -D warnings

checks: toolkit
	@$(FIND_NVCC)
	.ci/checks

fuzz: ## fuzz what reads foreign text, a minute each; needs cargo-fuzz and a nightly compiler
	@tests/fuzz/run all 60

# Where there is no cargo, GPU_TEST_BINARY is the test program that `cargo test --release --test gpu --no-run` makes.
test-gpu: toolkit ## the tests that need a GPU; what they say is kept in kernels/results/
	@$(FIND_NVCC)
	folder="kernels/results/$$($(PYTHON) kernels/machine.py)"
	mkdir -p "$$folder"
	if [[ -n '$(GPU_TEST_BINARY)' ]]; then tests=('$(GPU_TEST_BINARY)'); else tests=($(CARGO) test --locked --release --test gpu --); fi
	"$${tests[@]}" --include-ignored --test-threads=1 2>&1 | tee "$$folder/test-gpu.txt"

bench-gpu: build build-eval toolkit ## time the suite on this GPU: plain nvcc, nvtune, the whole space
	@$(FIND_NVCC)
	NVTUNE_BINARY='$(abspath $(NVTUNE))' NVTUNE_EVAL_BINARY='$(abspath $(NVTUNE_EVAL))' $(PYTHON) kernels/bench.py $(BENCH_OPTIONS)

eval: build-eval ## judge the model and the strategies by the recorded spaces; the tables are kept in kernels/results/EVAL.md
	@mkdir -p build
	'$(abspath $(NVTUNE_EVAL))' judge kernels/results > build/EVAL.md
	mv build/EVAL.md kernels/results/EVAL.md
	cat kernels/results/EVAL.md

eval-constants: build-eval ## what each constant of the model buys on the recorded spaces; the table is kept in kernels/results/CALIBRATION.md
	@mkdir -p build
	'$(abspath $(NVTUNE_EVAL))' constants kernels/results > build/CALIBRATION.md
	mv build/CALIBRATION.md kernels/results/CALIBRATION.md
	cat kernels/results/CALIBRATION.md

bench: build toolkit ## time compiles through nvtune against plain nvcc
	@$(FIND_NVCC)
	NVTUNE_BINARY='$(abspath $(NVTUNE))' $(PYTHON) kernels/compile_time.py $(BENCH_OPTIONS)

bench-dispatch: build toolkit ## time what the choice of an entry adds to a launch
	@$(FIND_NVCC)
	NVTUNE_BINARY='$(abspath $(NVTUNE))' $(PYTHON) kernels/dispatch_cost.py

bench-model: ## time the model: configurations scored in a second, a variant's code read and replayed
	@$(CARGO) bench --locked --bench scoring

docs: ## build the book in docs/ into build/book; needs mdbook
	@if ! command -v mdbook >/dev/null; then echo 'make: the book is built by mdbook; install it with: cargo install mdbook' >&2; exit 1; fi
	rm -rf build/book
	cd docs && mdbook build
	echo book: build/book/index.html

man: build ## write the man pages into build/man
	@rm -rf build/man
	mkdir -p build/man
	'$(abspath $(NVTUNE))' man build/man

install: build man ## put nvtune, man pages, completions and the CMake module under PREFIX (/usr/local)
	@install -d '$(DESTDIR)$(PREFIX)/bin'
	install -m 755 '$(NVTUNE)' '$(DESTDIR)$(PREFIX)/bin/nvtune'
	install -D -m 755 shims/nvcc '$(DESTDIR)$(PREFIX)/libexec/nvtune/nvcc'
	install -D -m 644 packaging/cmake/nvtuneConfig.cmake '$(DESTDIR)$(PREFIX)/share/cmake/nvtune/nvtuneConfig.cmake'
	install -d $(addprefix '$(DESTDIR)$(PREFIX)'/share/,bash-completion/completions zsh/site-functions fish/vendor_completions.d)
	'$(NVTUNE)' completions bash >'$(DESTDIR)$(PREFIX)/share/bash-completion/completions/nvtune'
	'$(NVTUNE)' completions zsh >'$(DESTDIR)$(PREFIX)/share/zsh/site-functions/_nvtune'
	'$(NVTUNE)' completions fish >'$(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d/nvtune.fish'
	for page in build/man/*.[1-9]; do install -D -m 644 "$$page" "$(DESTDIR)$(PREFIX)/share/man/man$${page##*.}/$${page##*/}"; done

VERSION := $(shell sed -n 's/^version = "\(.*\)"$$/\1/p' Cargo.toml | head -n 1)

deb: ## make a .deb with a folder of shims in build/packages
wheel: ## make a wheel for pip in build/packages
archive: ## make a tar.xz in build/packages
deb wheel archive: build
	@rm -rf build/stage
	$(MAKE) --no-print-directory install DESTDIR=build/stage PREFIX=/usr
	$(PYTHON) packaging/package.py $@ --root build/stage --version '$(VERSION)' --out build/packages $(if $(GLIBC),--glibc '$(GLIBC)')

clean: ## remove what was built; the toolkit stays
	@rm -rf build demo
	$(CARGO) clean

.ONESHELL:
