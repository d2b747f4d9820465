package pf

import (
	"strings"
	"testing"
)

// TestRewritePlace: the block stays where something of macfleet's was. At the end of
// a file with foreign "quick" rules nothing of it would be evaluated.
func TestRewritePlace(t *testing.T) {
	t.Parallel()
	block, quick := Block(name), "pass out quick all keep state\n"
	edited := strings.Replace(block, "/etc/pf.anchors/", "/tmp/", 1)
	apple, provider, _ := strings.Cut(stock, "table <fail2ban>")
	provider = "table <fail2ban>" + provider
	for _, tc := range []struct{ what, conf, want string }{
		{"nothing of macfleet's", stock + quick, stock + quick + block},
		{"an edited block", stock + edited + quick, stock + block + quick},
		{"the block twice", stock + block + quick + block, stock + block + quick},
		{"bare lines with their comment", stock + commented(name) + quick, stock + block + quick},
		{"a legacy name", stock + Block(legacy) + quick, stock + block + quick},
		{"legacy lines ahead of a block", stock + bare(legacy) + quick + block, stock + block + quick},
		{"no END", stock + strings.TrimSuffix(block, "# END "+name+"\n") + quick, stock + block + quick},
		{"a last line that does not end", stock + edited + strings.TrimSuffix(quick, "\n"), stock + block + strings.TrimSuffix(quick, "\n")},
		{"ahead of the translation, and behind it", edited + stock + bare(name) + quick, stock + block + quick},
		{"ahead of the translation", edited + stock + quick, apple + block + provider + quick},
		{"translation behind it", "pass in\n" + block + "nat-anchor \"f2b\"\n" + quick, "pass in\nnat-anchor \"f2b\"\n" + block + quick},
		{"a translation point of the name", "nat-anchor \"" + name + "\"\n" + stock + quick, apple + block + provider + quick},
	} {
		got, err := rewrite(tc.conf)
		live, odd := load(tc.conf, name, []string{legacy}, nil)
		if err != nil || odd != nil {
			t.Fatalf("%s: %v, %v", tc.what, err, odd)
		}
		expect(t, tc.what, tc.want, got)
		point := FilterPoint(name).String() + "\n"
		expect(t, tc.what+", live", strings.Replace(got, block, point, 1), strings.TrimSuffix(live, "\n")+got[len(strings.TrimSuffix(got, "\n")):])
	}
}
