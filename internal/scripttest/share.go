package scripttest

import (
	"fmt"
	"hash/crc32"
	"iter"
	"os"
	"strconv"
	"strings"
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

// Places returns the places of a test that are this run's, from 1, each with the shell that tries it.
// kinds has the kind of each place, such as the tool that is called there. Every run tries the first
// place of each kind, and the shells take turns. A share adds a seventh of all places in all shells.
func Places(t testing.TB, kinds []string, shells ...string) iter.Seq2[int, []string] {
	t.Helper()
	if shells == nil {
		shells = []string{""} // no script
	}
	share, of := Share()
	mine := places(kinds, len(shells), int(crc32.ChecksumIEEE([]byte(t.Name()))), share, of)
	if all := len(kinds) * len(shells); len(mine) < all {
		t.Logf("%d of %d places are left out: MACFLEET_TEST_SHARD=0 to %d adds a seventh of all, and all tries all", all-len(mine), all, Shares-1)
	}
	return func(yield func(int, []string) bool) {
		for _, at := range mine {
			if !yield(at/len(shells)+1, strings.Fields(shells[at%len(shells)])) {
				return
			}
		}
	}
}

// places chooses among places times shells. The first kind has the turn of a number.
func places(kinds []string, shells, turn, share, of int) (mine []int) {
	seen := make(map[string]bool)
	for i, kind := range kinds {
		turn := (turn + share + len(seen)) % shells
		for shell := range shells {
			at := i*shells + shell
			if !seen[kind] && shell == turn || of <= Shares && at%of == share {
				mine = append(mine, at)
			}
		}
		seen[kind] = true
	}
	return mine
}

// InTurn is like InShells, in one of the shells by turns, or in all with MACFLEET_TEST_SHARD=all. It is
// for what fails: what succeeds runs in each shell.
func InTurn(t *testing.T, test func(t *testing.T, shell []string), shells ...string) {
	t.Helper()
	if shells == nil {
		shells = Shells
	}
	var mine []string
	for _, shell := range Places(t, []string{"whole"}, shells...) {
		mine = append(mine, strings.Join(shell, " "))
	}
	InShells(t, test, mine...)
}

// Sampled skips a test under -short, unless it belongs to this run's share. The race detector runs
// with -short, and simulated Macs are slow there. Runs without it have every test.
func Sampled(t testing.TB) {
	t.Helper()
	mine, of := Share()
	if testing.Short() && of > 1 && int(crc32.ChecksumIEEE([]byte(t.Name())))%Shares != mine {
		t.Skip("under -short one of seven shares has it (MACFLEET_TEST_SHARD)")
	}
}

// Mine reports whether a test tries place n in this run. It is for places without kinds.
func Mine(n int) bool {
	mine, of := Share()
	return n%of == mine
}
