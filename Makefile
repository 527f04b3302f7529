# make setup   what is needed to run, into .venv and target, and four stacks into the cache
# make demo    sets up what the main job needs, which leaves out the emulator, the proxy and perf, and runs it
# make test    sets up and passes every test; ORDER=7 draws the order of the Python tests from 7
# make test-times   where the time of the last `make test` went
# make test-crate CRATE=link   the tests of one crate, and of the crates that use it
# make products   builds and tests what operators run, the proxies and perf, without the laboratory
# make soak MINUTES=10   looks for what no test has shown: new seeds, many cases, every pair, storms
# make docs    every study with the runs that its page needs, and what of the reference is generated: under five
#              hours; ALL=1 has all runs, eight hours
# make site    the documentation as a site in site/, by a generator of its own; a link that leads nowhere fails it
# make wheel   the package in dist/, with programs and two stacks inside, to be installed where no compiler is
# make wheel-check   installs it into a fresh environment, tries every command there, and says how long the first run took;
#              PROFILE=release makes it of the programs that `make setup` built, as CI does
# make smoke   tries what no test runs: every benchmark with its smallest setting, the targets of this file,
#              the templates of stacks in examples/, the example that plugs into noq, and a sweep of one constant
# make bench   what a trial costs, beside the same stacks over loopback UDP and beside picoquic's own
#              simulator, and which of its steps cost what; endpoint programs, beside their libraries
#              alone; queue disciplines, beside
#              drop-tail, and a link that 100 sources share; decoding, beside tshark;
#              congestion controllers, beside noq's; bentpipe perf, beside noq and iperf3, and through the proxies;
#              how exact real time is, beside this machine's timer; SMALLEST=1 only shows that all of them run
# make schemas what is generated: from the definitions of file formats in schemas/, types and reference
#              pages; from rules, scenarios, stacks and commands, parts of the reference; from titles of studies,
#              the answers in studies/README.md
# make lint    formatters and linters, changing nothing

PYTHON ?= python3
BIN := .venv/bin
PRODUCTS := $(patsubst products/%/Cargo.toml,--package bentpipe-%,$(wildcard products/*/Cargo.toml))
SMALL := $(if $(SMALLEST),--smallest)

.PHONY: setup demo test test-times test-crate products soak smoke docs site wheel wheel-check bench-needs bench lint fmt schemas clean
.DEFAULT_GOAL := setup

setup:
	@sh tools/setup.sh $(PYTHON)

demo:
	@sh tools/setup.sh $(PYTHON) demo
	$(BIN)/bentpipe run

test: setup
	@$(BIN)/python tools/tests.py $(if $(ORDER),--shuffle $(ORDER))

test-times:
	@$(BIN)/python tools/test_times.py

test-crate:
	@$(BIN)/python tools/tests.py --crate $(CRATE)

products:
	cargo build --release --locked $(PRODUCTS)
	cargo test --release --locked $(PRODUCTS) -- --quiet

soak: setup
	@$(BIN)/python tools/soak.py $(if $(MINUTES),--minutes $(MINUTES)) $(if $(SEED),--seed $(SEED)) $(if $(SEARCH),--search $(SEARCH))

smoke: setup
	$(BIN)/python -m pytest --quiet -m "smoke and not emulated" -n 2 tests/python/test_targets.py tests/python/test_documentation_site.py
	$(BIN)/python -m pytest --quiet -m "smoke and emulated" tests/python/test_targets.py

docs: setup
	$(BIN)/bentpipe stacks install --all
	$(BIN)/bentpipe study all $(if $(ALL),--all )--skip real-links # whose link is the laboratory's: bentpipe lab -- bentpipe study real-links
	$(MAKE) schemas

site:
	@sh tools/site.sh $(PYTHON)

wheel: $(if $(filter release,$(PROFILE)),setup)
	@sh tools/wheel.sh $(PYTHON) $(PROFILE)

wheel-check: wheel
	@sh tools/check-wheel.sh $(PYTHON) $(PROFILE)

# Other people's programs that benchmarks stand beside: asked for before anything is built.
bench-needs:
	@for it in tshark editcap iperf3; do command -v $$it >/dev/null || \
		{ echo "make bench: $$it is not installed (hint: apt install tshark iperf3)" >&2; exit 1; }; done

bench: bench-needs setup
	$(BIN)/bentpipe stacks install linux # TCP, beside iperf3: not one of the four that `make setup` installs
	$(BIN)/python benches/explore.py $(SMALL)
	$(BIN)/python benches/pairs.py $(SMALL)
	$(BIN)/python benches/draws.py $(SMALL)
	$(BIN)/python benches/cost.py $(SMALL)
	$(BIN)/python benches/reference.py $(SMALL)
	$(BIN)/python benches/epochs.py $(SMALL)
	$(BIN)/python benches/queues.py $(SMALL)
	$(BIN)/python benches/satellites.py $(SMALL)
	$(BIN)/python benches/traces.py $(SMALL)
	cargo bench --quiet --locked --workspace --bench per_packet $(if $(SMALL),-- --test)
	$(BIN)/python benches/perf.py $(SMALL)
	$(BIN)/python benches/pep.py $(SMALL)
	$(BIN)/python benches/masque.py $(SMALL)
	$(BIN)/python benches/tcp_pep.py $(SMALL)
	$(BIN)/python benches/iperf3.py $(SMALL)
	$(BIN)/python benches/real_time.py $(SMALL)

lint:
	cargo fmt --all --check
	cargo clippy --release --workspace --exclude bentpipe-noq-proto --exclude bentpipe-h3 --all-targets --features bentpipe-endpoint/interposed-clock --quiet -- -D warnings
	@sh tools/lint-stacks.sh
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	@! command -v gofmt >/dev/null || test -z "$$(gofmt -l endpoints middleboxes | tee -a /dev/stderr)"

schemas:
	$(BIN)/python tools/schemas/generate.py
	$(BIN)/python tools/reference/pages.py

fmt:
	cargo fmt --all
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

clean:
	cargo clean
	rm -rf .venv dist site
