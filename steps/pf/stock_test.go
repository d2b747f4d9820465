package pf_test

import (
	"strings"
	"testing"

	"github.com/macfleet/macfleet/steps/pf"
	"github.com/macfleet/macfleet/steps/stepstest"
)

const stockLines = `scrub-anchor "com.apple/*"
nat-anchor "com.apple/*"
rdr-anchor "com.apple/*"
dummynet-anchor "com.apple/*"
anchor "com.apple/*"
load anchor "com.apple" from "/etc/pf.anchors/com.apple"
`

// TestWithStock: lines of macOS's own that a pf.conf lacks come back where pfctl takes them, and no one else's line moves.
func TestWithStock(t *testing.T) {
	t.Parallel()
	provider := "table <fail2ban> persist\nblock drop in proto { tcp, udp } from <fail2ban> to any\n"
	without := func(text string, lines ...string) string {
		for _, line := range lines {
			text = strings.ReplaceAll(text, line+"\n", "")
		}
		return text
	}
	extra := "anchor \"com.apple.newer/*\"\n"
	for _, tc := range []struct {
		name, conf, first, want string
		lacks                   int
	}{
		{"whole", stepstest.StockPFConf, "", stepstest.StockPFConf, 0},
		{"whole, as at the first contact", stepstest.StockPFConf, stepstest.StockPFConf, stepstest.StockPFConf, 0},
		{"empty", "", "", stockLines, 6},
		{"empty, with all of the first contact", "", stepstest.StockPFConf, stepstest.StockPFConf, 6},
		{"no end of line", "pass", "", stockLines + "pass", 6},
		{"only comments", "# mine\n", "", "# mine\n" + stockLines, 6},
		{"translation gone", without(stepstest.StockPFConf, `nat-anchor "com.apple/*"`, `rdr-anchor "com.apple/*"`), "", stepstest.StockPFConf, 2},
		{"all but the header", "# Default\n\n" + provider, "", "# Default\n\ntable <fail2ban> persist\n" + stockLines +
			"block drop in proto { tcp, udp } from <fail2ban> to any\n", 6},
		{"only macfleet's block", pf.Block("macfleet"), "", stockLines + pf.Block("macfleet"), 6},
		{"a comment belongs to what follows", "set skip on lo0\n# END f2b\n# mine\npass\n", "",
			"set skip on lo0\n# END f2b\n" + stockLines + "# mine\npass\n", 6},
		{"as a comment", strings.Replace(stepstest.StockPFConf, "nat-anchor", "#nat-anchor", 1), "",
			strings.Replace(stepstest.StockPFConf, "nat-anchor", "#nat-anchor", 1), 1},
		{"out of order", without(stepstest.StockPFConf, `nat-anchor "com.apple/*"`) + "nat-anchor \"com.apple/*\"\n", "", stepstest.StockPFConf, 1},
		{"macfleet's ahead of it", "anchor \"macfleet\"\n" + stepstest.StockPFConf, "", "anchor \"macfleet\"\n" + stepstest.StockPFConf, 0},
		{"more at the first contact", stepstest.StockPFConf, stockLines + extra, strings.Replace(stepstest.StockPFConf,
			"anchor \"com.apple/*\"\nload", "anchor \"com.apple/*\"\n"+extra+"load", 1), 1},
		{"others' and vmnet's lines of the first contact", stepstest.StockPFConf, stockLines + "nat-anchor \"com.apple.internet-sharing\"\npass quick\n", stepstest.StockPFConf, 0},
	} {
		conf, err := pf.Parse(tc.conf)
		first, firstErr := pf.Parse(tc.first)
		if err != nil || firstErr != nil {
			t.Fatal(tc.name, err, firstErr)
		}
		whole, lacks := conf.WithStock(first, []string{"macfleet"})
		got, err := whole.Remove(nil)
		if tc.name == "as a comment" {
			tc.want = strings.Replace(tc.want, "#nat-anchor \"com.apple/*\"\n", "#nat-anchor \"com.apple/*\"\nnat-anchor \"com.apple/*\"\n", 1)
		}
		if got != tc.want || len(lacks) != tc.lacks || err != nil {
			t.Errorf("%s: lacks %q, %v:\n%s\nwant\n%s", tc.name, lacks, err, got, tc.want)
		}
		if again, lacks := whole.WithStock(first, []string{"macfleet"}); len(lacks) > 0 {
			t.Errorf("%s: afterwards it lacks %q of %v", tc.name, lacks, again)
		}
	}
}
