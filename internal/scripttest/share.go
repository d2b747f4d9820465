package scripttest

import (
	"cmp"
	"fmt"
	"hash/crc32"
	"os"
	"strconv"
	"sync"
	"testing"
)

// Shares is how many runs cover all places at which tests end a script, an apply or a
// process.
const Shares = 7

// Share returns this run's share, from MACFLEET_TEST_SHARD: 0 to 6, 0 where it is not set;
// -1: all.
var Share = sync.OnceValue(func() int {
	text := cmp.Or(os.Getenv("MACFLEET_TEST_SHARD"), "0")
	if text == "all" {
		return -1
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 || n >= Shares {
		panic(fmt.Sprintf("MACFLEET_TEST_SHARD is %q: write 0 to %d, or all", text, Shares-1))
	}
	return n
})

// Sampled leaves a test out under -short, as the run with the race detector has it, unless
// it falls into this run's share: simulated Macs are slow there, and the run without the
// detector has every test.
func Sampled(t testing.TB) {
	t.Helper()
	if testing.Short() && !Mine(int(crc32.ChecksumIEEE([]byte(t.Name())))) {
		t.Skip("under -short one of seven shares has it (MACFLEET_TEST_SHARD)")
	}
}

// Mine reports whether a test ends its script at place n in this run. Seven runs, one
// with each share, cover every place.
func Mine(n int) bool { return Share() < 0 || n%Shares == Share() }
