# make demo  shows macfleet in a simulated world; needs only Go
# make test  runs every test
# make man   writes the man pages into man/
# make reference writes docs/reference and docs/codes.md from the source
# make lint  runs the checks that CI runs besides the tests
# make race  runs the packages with goroutines under the race detector (needs a C compiler)
# make kills interrupts runs and scripts at each place, and makes them race; MACFLEET_TEST_SHARD=0 to 6 takes a seventh of them
# make engine runs the tests with simulated Macs; MACFLEET_SANDBOX_ANSWERS=check or off for their memory
# make pictures draws the pictures of the pages from real runs (Linux)
# make matrix injects each fault at every point of a rollout (10 minutes)
# make fuzz  lets the parsers and rewriters of what hosts and Scaleway say run for a minute each
# make bench measures the budgets and fails when one is exceeded
# make conformance HOST=name  checks the table of macOS's tools on a Mac
# make conformance-settings HOST=name I_OWN_THIS_MAC=1  the same of a Mac that may be disrupted (docs/first-mac.md)
# make apiserver builds the kube-apiserver that some tests need, once (6 minutes)
# make tailnet builds the Headscale, tailscaled and node_exporter that some tests need, once (12 minutes)

GO ?= go

# Only the race detector needs a C compiler, which a fresh machine may lack.
export CGO_ENABLED ?= 0

# Garbage collection is a quarter of the CPU of the tests with simulated Macs, and an eighth of the
# compiler's. Collecting less often costs memory: the largest process of the tests has 2.4 GB.
export GOGC ?= 400

.PHONY: build demo man reference test lint race engine kills fuzz matrix bench conformance conformance-settings apiserver tailnet pictures clean

build:
	$(GO) build -trimpath -ldflags '-s -w' -o bin/macfleet ./cmd/macfleet

# The generators are tests, which compare what is written with what would be.
man:
	$(GO) test ./cmd/macfleet -run '^TestManPages$$' -count 1 -man '$(abspath man)'

reference:
	$(GO) test ./cmd/macfleet ./fleet/load ./internal/archtest -run '^(TestReference|TestCodes)$$' -count 1 -update

# docs/images/plan.sh runs macfleet on a terminal of a given width.
pictures: build
	$(GO) build -o bin/picture ./internal/picture
	sh docs/images/plan.sh

demo: build
	sh examples/demo.sh bin/macfleet

# Without symbols for a debugger a test links twice as fast; its stack traces stay. With
# -trimpath the test that builds a copy of the tree finds all packages built. make lint vets
# all packages, so the tests do not.
CACHEDFLAGS ?= -vet=off -trimpath -ldflags '-s -w'

# With -count=1 Go does not note every file that a test opens, to know whether its result can be
# reused: for the simulated Macs that were 25 million lines, 4 GB, in one package.
TESTFLAGS ?= -count=1 $(CACHEDFLAGS)

# TESTRUN chooses tests by their source.
TESTRUN = $(GO) run ./internal/testrun

# A package takes at most four minutes, and a test that hangs ends by the deadline of its wait. The
# limit is longer, as machines may be shared: the engine took more than nine next to fourteen busy
# processes. With TESTRUN_CPU=FILE the CPU seconds of each package are noted there.
TIMEOUT ?= 20m
test:
	$(if $(TESTRUN_CPU),$(GO) build -o bin/testrun ./internal/testrun)
	failed=0; \
	$(GO) test $(CACHEDFLAGS) $(NOTED) -timeout $(TIMEOUT) $$($(TESTRUN) cached) || failed=1; \
	$(GO) test $(TESTFLAGS) $(NOTED) -timeout $(TIMEOUT) $$($(TESTRUN) uncached) || failed=1; \
	exit $$failed
NOTED = $(if $(TESTRUN_CPU),-exec '$(abspath bin/testrun) exec')

# The packages that start goroutines, or guard what several use. Of the engine's tests with
# simulated Macs it runs a seventh, as MACFLEET_TEST_SHARD says, and of the commands' a few.
race:
	CGO_ENABLED=1 $(GO) test -race -short $(TESTFLAGS) -timeout $(TIMEOUT) $$($(TESTRUN) race)
	CGO_ENABLED=1 $(GO) test -race -short $(TESTFLAGS) -timeout $(TIMEOUT) ./cmd/macfleet -run 'TestScripts/(story|nodes|peers|lock)$$'

# The tests with simulated Macs. MACFLEET_SANDBOX_ANSWERS=check compares remembered answers with new ones.
engine:
	$(GO) test $(TESTFLAGS) -timeout 50m ./internal/sandbox/... ./internal/engine

# The tests that take a share.
kills:
	MACFLEET_TEST_SHARD=$${MACFLEET_TEST_SHARD:-all} $(GO) test $(TESTFLAGS) -timeout 50m $$($(TESTRUN) shared)

lint:
	@all=$$(gofmt -l .) && test -z "$$all" || { echo "$$all" >&2; false; }
	$(GO) vet ./...
	$(GO) run honnef.co/go/tools/cmd/staticcheck@v0.8.2 ./...
	$(GO) run github.com/rhysd/actionlint/cmd/actionlint@v1.7.12 .github/workflows/*.yml examples/ci/.github/workflows/*.yml
	shellcheck --shell=sh --severity=warning examples/demo.sh
	shellcheck .ci/run .ci/apiserver .ci/demo .ci/tailnet cmd/macfleet/testdata/gh
	shellcheck --shell=sh --exclude=SC2154 $$(find . -path '*/scripts/*.sh' -not -path '*/shared/*')
	shellcheck --shell=sh --exclude=SC2034,SC2154 $$(find . -path '*/scripts/shared/*.sh')

# A corpus is next to each test, in testdata/fuzz.
FUZZTIME ?= 60s
fuzz:
	$(GO) test ./steps/pf -run '^$$' -fuzz '^FuzzRewrite$$' -fuzztime $(FUZZTIME)
	$(GO) test ./steps/pf -run '^$$' -fuzz '^FuzzListings$$' -fuzztime $(FUZZTIME)
	$(GO) test ./steps/kcpassword -run '^$$' -fuzz '^FuzzDecode$$' -fuzztime $(FUZZTIME)
	$(GO) test ./steps/vmfirewall -run '^$$' -fuzz '^FuzzVMFirewallState$$' -fuzztime $(FUZZTIME)
	$(GO) test ./steps/autologin -run '^$$' -fuzz '^FuzzAutoLogin$$' -fuzztime $(FUZZTIME)
	$(GO) test ./providers/scaleway -run '^$$' -fuzz '^FuzzRefusals$$' -fuzztime $(FUZZTIME)
	$(GO) test ./providers/scaleway -run '^$$' -fuzz '^FuzzHeaders$$' -fuzztime $(FUZZTIME)

matrix:
	$(GO) test -count=1 -timeout 30m ./internal/engine -run '^(TestFaultMatrixOverSSH|TestCrowdOverSSH)$$' -v -parallel 4 -all
	$(GO) test -count=1 -timeout 30m ./cmd/macfleet -run '^TestKilledAnywhere$$' -v -parallel 4 -killed.every=1 -shard all

# USER is a variable of every shell, so it counts only from the command line.
# docs/conformance.md says what this does to a Mac and what it never does.
conformance:
	$(GO) test ./internal/conformance -run '^TestMac$$' -count 1 -v -timeout 30m -host '$(HOST)' \
	  -user '$(if $(filter command line,$(origin USER)),$(USER),m1)' -key '$(if $(KEY),$(abspath $(KEY)))' -fingerprint '$(FINGERPRINT)' $(if $(FILES),-files)

# docs/first-mac.md says what this disturbs on a Mac and what it takes back.
conformance-settings:
	$(GO) test ./internal/conformance -run '^TestOwnedMac$$' -count 1 -v -timeout 40m -host '$(HOST)' \
	  -user '$(if $(filter command line,$(origin USER)),$(USER),m1)' -key '$(if $(KEY),$(abspath $(KEY)))' -fingerprint '$(FINGERPRINT)' \
	  $(if $(filter 1,$(I_OWN_THIS_MAC)),-own) $(if $(filter 1,$(ANYWAY)),-anyway) -vm '$(VM)' -out '$(if $(OUT),$(abspath $(OUT)))'

# The tests also need etcd (Debian: etcd-server).
apiserver:
	.ci/apiserver

# The tests also need ip (Debian: iproute2), and root or user namespaces.
tailnet:
	.ci/tailnet

# ROWS=ssh,plan measures only these; BENCH=-rounds=9 passes more flags.
bench:
	$(GO) run ./internal/bench $(if $(ROWS),-rows $(ROWS)) $(BENCH)

clean:
	rm -rf bin
