package mac

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// listing returns what pfctl shows of a text of rules, or its faults.
func listing(text string) string {
	file, faults, lacks := parsePF(text)
	var shown []string
	for _, fault := range faults {
		shown = append(shown, fault.Error())
	}
	shown = append(shown, lacks...)
	if len(shown) > 0 {
		return strings.Join(shown, "\n")
	}
	for _, one := range file.rules {
		shown = append(shown, one.Text)
	}
	return strings.Join(shown, "\n")
}

func TestRulesAsPfctlShowsThem(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ text, shown string }{
		{"", ""},
		{"scrub-anchor \"com.apple/*\"\n", `scrub-anchor "com.apple/*" all fragment reassemble`},
		{"anchor com.acme", `anchor "com.acme" all`},
		{"block drop in proto { tcp, udp } from <fail2ban> to any", "block drop in proto tcp from <fail2ban> to any\nblock drop in proto udp from <fail2ban> to any"},
		{"block drop out quick from <vm_sources> to <blocked_dst>", "block drop out quick from <vm_sources> to <blocked_dst>"},
		{"block out quick from <vm_sources> to 169.254.169.254", "block drop out quick inet from <vm_sources> to 169.254.169.254"},
		{"set block-policy return\nblock", "block return all"},
		{"pass", "pass all flags S/SA keep state"},
		{"pass out quick on en0 proto udp to any port 53", "pass out quick on en0 proto udp from any to any port = domain keep state"},
		{"pass in proto tcp from any to any port 30000:32767 flags any", "pass in proto tcp from any to any port 30000:32767 flags any keep state"},
		{"pass in quick on ! lo0 inet6 proto tcp from ::1 port >= 1024 to fe80::/10 no state", "pass in quick on ! lo0 inet6 proto tcp from ::1 port >= 1024 to fe80::/10 no state"},
		{"pass to { 10/8, 192.168.0.0/16 }", "pass inet from any to 10.0.0.0/8 flags S/SA keep state\npass inet from any to 192.168.0.0/16 flags S/SA keep state"},
		{"block to { 10.0.0.1 ::1 } from 10.0.0.0/8", "1: syntax error"},
		{"block from 10.0.0.0/8 to { 10.0.0.1 ::1 }", "block drop inet from 10.0.0.0/8 to 10.0.0.1"},
		{"block from 10.0.0.0/8 to ::1", "1: rule expands to no valid combination"},
		{"block to port 22", "1: port only applies to tcp/udp"},
		{"nets = \"{ 10.0.0.0/8, 172.16.0.0/12 }\"\nblock out from $nets to any label \"acme\"", "block drop out inet from 10.0.0.0/8 to any label \"acme\"\nblock drop out inet from 172.16.0.0/12 to any label \"acme\""},
		{"block out \\\n  from any \\\n  to 10.0.0.1 # a comment \\", "block drop out inet from any to 10.0.0.1"},
		{"nat on en0 from 192.168.64.0/24 to any -> (en0)", "nat on en0 inet from 192.168.64.0/24 to any -> (en0) round-robin"},
		{"no nat on en0 from 10.0.0.1 to any", "no nat on en0 inet from 10.0.0.1 to any"},
		{"rdr pass on lo0 proto tcp from any to any port 80 -> 127.0.0.1 port 8080", "rdr pass on lo0 inet proto tcp from any to any port = http -> 127.0.0.1 port 8080"},
		{"scrub on utun4 all max-mss 1200", "scrub on utun4 all max-mss 1200 fragment reassemble"},
		// The order of the parts, with pfctl's own message about it.
		{"anchor \"a\"\nnat-anchor \"b\"", "2: " + pfOutOfOrder},
		{"pass\ntable <t> persist\nload anchor \"a\" from \"/f\"\nx = \"y\"", "pass all flags S/SA keep state"},
		{"set require-order no\npass\nscrub in", "pass all flags S/SA keep state\nscrub in all fragment reassemble"},
		{"nat-anchor \"a\"\ndummynet-anchor \"b\"\nset skip on lo0\npass", "3: " + pfOutOfOrder},
		// All faults are reported at once.
		{"frob\npass\n$nothing\nblock frob", "1: syntax error\n3: macro 'nothing' not defined\n3: syntax error\n4: syntax error"},
		{"block drop \"", "1: syntax error"},
		{"table <t> { 10.0.0.0/8, nonsense }", "1: syntax error"},
		{"pass { ", "1: syntax error"},
		{"anchor \"a\" {\n pass", "2: syntax error"},
		{"a = \"$a\"\npass on $a", "2: macro nesting too deep\n2: syntax error"},
		{"anchor", "1: anchor rules need a name"},
		{"set nonsense on", "1: syntax error"},
		// Parts of pf that the simulation lacks are reported as such.
		{"pass in from any to any user root", "not modelled: user"},
		{"block in from acme.example to any", "not modelled: host acme.example"},
		{"pass out route-to (en0 10.0.0.1) all", "not modelled: route-to"},
	} {
		equal(t, listing(c.text), c.shown, c.text, "is shown as")
	}
}

// TestListingCanBeLoaded checks that pfctl's output is a file with the same rules.
func TestListingCanBeLoaded(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		one := func(label string, words ...string) string { return rapid.SampledFrom(words).Draw(t, label) }
		text := strings.Join([]string{
			one("action", "pass", "block", "block return", "anchor \"a/b\""), one("direction", "", "in", "out"), one("quick", "", "quick"),
			one("on", "", "on en0", "on { en0 ! lo0 }"), one("family", "", "inet"), one("protocol", "proto tcp", "proto { tcp udp }"),
			"from", one("source", "any", "<t>", "! <t>", "10.0.0.0/8", "{ 10.0.0.1, 10.0.0.2 }", "(en0)"), one("ports", "", "port 22", "port { 1:2 > 4 }"),
			"to", one("target", "any", "192.168.0.0/16"), one("target ports", "", "port 5 >< 9", "port != 80"),
			one("state", "", "no state", "flags S/SA", "flags any keep state"), one("label", "", "label \"x y\"", "tag z"),
		}, " ")
		shown := listing(text)
		if again := listing(shown); again != shown {
			t.Fatalf("%s\nis shown as\n%s\nand that as\n%s", text, shown, again)
		}
	})
}

func FuzzParsePF(f *testing.F) {
	for _, text := range []string{ApplePFConf + providerPFConf, appleAnchorRules, "a = \"$a\"\npass on $a", "anchor { pass \n anchor { block } }",
		"nat on en0 from { 10/8 ::1 } to ! <t> port { 1:2, ssh } -> (en0) static-port", "table <t> const { !1.2.3.4 }\nset limit { a 1 }\naltq on en0"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		file, faults, lacks := parsePF(text)
		for _, fault := range faults {
			if fault.line < 1 || fault.line > strings.Count(text, "\n")+1 {
				t.Errorf("a fault in line %d", fault.line)
			}
		}
		if len(faults)+len(lacks) > 0 {
			return
		}
		for _, one := range file.rules {
			if strings.Contains(one.Text, "\n") {
				t.Errorf("a rule of two lines: %q", one.Text)
			}
		}
	})
}

func TestEvaluatedAnchors(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		main, file string
		anchors    []string // that have rules
		met        string
	}{
		{main: "pass", anchors: []string{"a"}},
		{main: "anchor \"a\"", anchors: []string{"a", "b"}, met: "a"},
		{main: "nat-anchor \"a\"", anchors: []string{"a"}},
		{main: "anchor \"com.apple/*\"", anchors: []string{"com.apple", "com.apple/x", "com.apple/x/y", "x"}, met: "com.apple/x"},
		{main: "anchor \"a\"", file: "anchor \"b\"", anchors: []string{"a", "a/b", "b"}, met: "a a/b"},
		{main: "anchor \"a\"", file: "anchor \"/b\"", anchors: []string{"a", "a/b", "b"}, met: "a b"},
	} {
		live := &filter{Rulesets: map[string]*ruleset{}}
		load := func(anchor, text string) {
			l := &loading{live: live, switched: func(string) string { return "" }}
			next, err := l.load("f", text, anchor)
			ok(t, err)
			live = next
		}
		load("", c.main)
		for _, anchor := range c.anchors {
			load(anchor, "block")
		}
		if c.file != "" {
			load(c.anchors[0], c.file)
		}
		equal(t, strings.Join(live.evaluated(), " "), c.met, c.main, "with", c.anchors, "evaluated are")
	}
}

func TestTableIsASet(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var own table
		known := map[netip.Prefix]bool{}
		for _, last := range rapid.SliceOf(rapid.IntRange(-9, 9)).Draw(t, "addresses") {
			prefix := netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 0, 0, byte(max(last, -last))}), 32)
			if last >= 0 {
				if own.add(tableAddress{Prefix: prefix}) == known[prefix] {
					t.Fatalf("%s was present: %t", prefix, known[prefix])
				}
			} else if own.remove(prefix) != known[prefix] {
				t.Fatalf("%s was present: %t", prefix, known[prefix])
			}
			known[prefix] = last >= 0
		}
		if !slices.IsSortedFunc(own.Addresses, func(a, b tableAddress) int { return a.Prefix.Addr().Compare(b.Prefix.Addr()) }) {
			t.Fatalf("not sorted: %v", own.Addresses)
		}
	})
}
