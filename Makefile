# make demo  tells the story in a simulated world; needs Go alone
# make test  runs every test
# make lint  runs the checks that CI runs beside the tests
# make conformance HOST=name  checks the table of macOS's tools on a Mac
# make fuzz  lets the parsers and rewriters of what hosts say run for a minute each
# make apiserver builds the kube-apiserver that some tests need, once (6 minutes)
# make matrix lets each fault befall a roll at each place where it can (10 minutes)
# make bench measures the budgets and fails when one is exceeded

GO ?= go

# The race detector needs a C compiler, which a fresh machine may lack: CI has
# one.
ifdef CI
RACE := -race
else
export CGO_ENABLED ?= 0
endif

.PHONY: build demo test lint fuzz matrix bench conformance apiserver clean

build:
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags '-s -w' -o bin/macfleet ./cmd/macfleet

demo: build
	sh examples/demo.sh bin/macfleet

# The race detector makes the runs of the whole program several times slower.
test:
	$(GO) test $(RACE) -timeout 30m ./...

lint:
	@test -z "$$(gofmt -l . | tee /dev/stderr)"
	$(GO) vet ./...
	$(GO) run honnef.co/go/tools/cmd/staticcheck@v0.8.2 ./...
	$(GO) run github.com/rhysd/actionlint/cmd/actionlint@v1.7.12 examples/ci/.github/workflows/*.yml
	shellcheck --shell=sh --severity=warning examples/demo.sh
	shellcheck .ci/run .ci/apiserver cmd/macfleet/testdata/gh
	shellcheck --shell=sh --exclude=SC2154 hosts/scripts/*.sh steps/scripts/*.sh internal/conformance/scripts/*.sh
	shellcheck --shell=sh --exclude=SC2034,SC2154 steps/scripts/shared/*.sh

# A corpus lies beside each test, in testdata/fuzz.
FUZZTIME ?= 60s
fuzz:
	$(GO) test ./steps/pf -run '^$$' -fuzz '^FuzzRewrite$$' -fuzztime $(FUZZTIME)
	$(GO) test ./steps/pf -run '^$$' -fuzz '^FuzzListings$$' -fuzztime $(FUZZTIME)
	$(GO) test ./steps/kcpassword -run '^$$' -fuzz '^FuzzDecode$$' -fuzztime $(FUZZTIME)
	$(GO) test ./steps -run '^$$' -fuzz '^FuzzVMFirewallState$$' -fuzztime $(FUZZTIME)
	$(GO) test ./steps -run '^$$' -fuzz '^FuzzAutoLogin$$' -fuzztime $(FUZZTIME)

matrix:
	CGO_ENABLED=0 $(GO) test -count=1 -timeout 30m ./internal/engine -run '^(TestFaultMatrix|TestCrowd)$$' -v -parallel 4
	CGO_ENABLED=0 $(GO) test -count=1 -timeout 30m ./cmd/macfleet -run '^TestKilledAnywhere$$' -v -parallel 4 -killed.every=1

# USER is a variable of every shell, so it counts only from the command line.
# docs/conformance.md says what this does to a Mac and what it never does.
conformance:
	$(GO) test ./internal/conformance -run '^TestMac$$' -count 1 -v -timeout 30m -host '$(HOST)' \
	  -user '$(if $(filter command line,$(origin USER)),$(USER),m1)' -key '$(if $(KEY),$(abspath $(KEY)))' -fingerprint '$(FINGERPRINT)' $(if $(FILES),-files)

# The tests also need etcd (Debian: etcd-server).
apiserver:
	.ci/apiserver

# ROWS=ssh,plan measures these alone; BENCH=-rounds=9 passes more flags.
bench:
	$(GO) run ./internal/bench $(if $(ROWS),-rows $(ROWS)) $(BENCH)

clean:
	rm -rf bin
