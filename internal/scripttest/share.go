package scripttest

import (
	"fmt"
	"hash/crc32"
	"os"
	"strconv"
	"sync"
	"testing"
)

// Shares is how many runs cover all places where tests kill a script, an apply or a process.
const Shares = 7

// Share returns this run's share and the number of shares, from MACFLEET_TEST_SHARD: 0 to 6, or all.
// Without it, as on a person's machine, the share is a third of the first, so that make test is fast.
var Share = sync.OnceValues(func() (n, of int) {
	text := os.Getenv("MACFLEET_TEST_SHARD")
	switch text {
	case "":
		return 0, 3 * Shares
	case "all":
		return 0, 1
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 || n >= Shares {
		panic(fmt.Sprintf("MACFLEET_TEST_SHARD is %q: write 0 to %d, or all", text, Shares-1))
	}
	return n, Shares
})

// Sampled skips a test under -short, unless it belongs to this run's share. The race detector runs
// with -short, and simulated Macs are slow there. Runs without it have every test.
func Sampled(t testing.TB) {
	t.Helper()
	mine, of := Share()
	if testing.Short() && of > 1 && int(crc32.ChecksumIEEE([]byte(t.Name())))%Shares != mine {
		t.Skip("under -short one of seven shares has it (MACFLEET_TEST_SHARD)")
	}
}

// Mine reports whether a test kills its script at place n in this run. Seven runs, one with each
// share, cover every place.
func Mine(n int) bool {
	mine, of := Share()
	return n%of == mine
}
