package drift

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
)

// The fingerprints of no drift.
const (
	Clean   = "clean"   // all was compared, and there is none
	Unknown = "unknown" // there is none among what was compared, and that was not all
)

// fingerprint is of what an item is about, and of nothing that moves from run to
// run: neither times and counts, nor texts. How bad a code is may be judged otherwise
// by a newer macfleet, and that is no new drift.
func fingerprint(i Item) string {
	return short(fmt.Sprintf("%q %q %q", i.Host, i.Step, i.Code))
}

// fingerprintOf is the same for the same items in any order.
func fingerprintOf(complete bool, all ...Item) string {
	prints := make([]string, 0, len(all))
	for _, i := range all {
		prints = append(prints, i.Fingerprint)
	}
	slices.Sort(prints)
	prints = slices.Compact(prints)
	switch {
	case len(prints) > 0:
		return short(strings.Join(prints, "\n"))
	case complete:
		return Clean
	}
	return Unknown
}

// short is 64 bits of a digest: enough to tell drifts apart, and short enough for a
// title.
func short(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:8])
}
