package pf

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/macfleet/macfleet/fleet"
)

func spec(t testing.TB, sources []string, blocked ...string) Spec {
	t.Helper()
	s, err := NewSpec(sources, blocked)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestRules(t *testing.T) {
	t.Parallel()
	sources := []string{"192.168.64.0/22"}
	s := spec(t, sources, "172.16.0.0/12", "10.0.0.0/8", "169.254.0.0/16", "10.0.0.0/8")
	got := s.File()
	expect(t, "anchor file", `# Managed by macfleet.
# What virtual machines send to these networks is dropped.
table <vm_sources> { 192.168.64.0/22 }
table <blocked_dst> { 10.0.0.0/8, 169.254.0.0/16, 172.16.0.0/12 }
block drop quick from <vm_sources> to <blocked_dst>
block drop quick from <vm_sources> to 169.254.169.254
`, got)
	if !IsManaged(got) || !IsManaged(Header+"\r\nedited\n") || IsManaged("") || IsManaged("table <x>\n"+got) {
		t.Error("the header does not tell whose a file is")
	}
	if again := spec(t, sources, "10.0.0.0/8", "10.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12").File(); again != got {
		t.Errorf("another order gives another file:\n%s", again)
	}
	expect(t, "rules", []string{"block drop quick from <vm_sources> to <blocked_dst>", "block drop quick from <vm_sources> to 169.254.169.254"}, Rules())
	expect(t, "tables", map[string]string{"vm_sources": "192.168.64.0/22", "blocked_dst": "10.0.0.0/8, 169.254.0.0/16, 172.16.0.0/12"}, s.Tables)
	for network, covered := range map[string]bool{"192.168.64.0/22": true, "192.168.65.0/24": true, "192.168.64.0/21": false, "192.168.68.0/24": false} {
		if s.Covers(netip.MustParsePrefix(network)) != covered {
			t.Errorf("%s is covered: %t", network, !covered)
		}
	}
}

// TestRulesFailClosed: what is not exactly a list of networks makes no filter.
func TestRulesFailClosed(t *testing.T) {
	t.Parallel()
	good := []string{"10.0.0.0/8"}
	for _, lists := range [][2][]string{{}, {good, nil}, {nil, good}} {
		if s, err := NewSpec(lists[0], lists[1]); err == nil {
			t.Errorf("%q became %q", lists, s.File())
		}
	}
	for _, text := range []string{"", "10.0.0.0", "10.0.0.1/8", "10.0.0.0/33", "10.0/8", "0.0.0.0/0", "::/0", "fd00::/8", "10.0.0.0/8 ", "10.0.0.0/8\npass", "010.0.0.0/8", "any", "$(id)"} {
		for _, lists := range [][2][]string{{append(good, text), good}, {good, append(good, text)}} {
			if s, err := NewSpec(lists[0], lists[1]); err == nil {
				t.Errorf("%q counts as a network: %q", text, s.File())
			}
		}
	}
	for _, n := range []string{"", "com.apple", "com.apple/x", "Com.Apple.x", "a b", "a/b", "a\"b", ".a", "-a", "_1", "a\n", "größe", strings.Repeat("a", 64)} {
		if fleet.CheckText("anchor", n) == "" {
			t.Errorf("%q counts as an anchor's name", n)
		}
	}
	for _, n := range []string{"macfleet", "acme.runners", "A_1-b", strings.Repeat("a", 63)} {
		if why := fleet.CheckText("anchor", n); why != "" {
			t.Errorf("%q: %s", n, why)
		}
	}
}

func TestLiveRules(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		listing string
		want    []string // nil: not understood
	}{
		{"", []string{}},
		{"\n", []string{}},
		{"block drop quick from <vm_sources> to <blocked_dst>\nblock drop quick inet from <vm_sources> to 169.254.169.254\n", Rules()},
		{"block drop quick inet from <vm_sources:1> to <blocked_dst:3>\nblock  drop quick inet from <vm_sources:*> to 169.254.169.254/32", Rules()},
		{"pass in quick on en0 inet proto tcp from any to any port = 22 flags S/SA keep state label \"x\"\n",
			[]string{"pass in quick on en0 proto tcp from any to any port = 22 flags S/SA keep state label \"x\""}},
		{"block drop quick inet6 from any to fe80::/10\n", []string{"block drop quick inet6 from any to fe80::/10"}},
		{"No ALTQ support in kernel\n", nil},
		{"block drop quick from <vm_sources> towards <blocked_dst>\n", nil},
		{"pfctl: DIOCGETRULES: Invalid argument\n", nil},
		{"\x00\n", nil},
	} {
		got, err := LiveRules(tc.listing)
		if (err != nil) != (tc.want == nil) || strings.Join(got, "\n") != strings.Join(tc.want, "\n") {
			t.Errorf("%q: %q, %v", tc.listing, got, err)
		}
	}
}

func TestListings(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{"Status: Enabled for 0 days 00:01:02           Debug: Urgent\n\nState Table\n": "on", "Status: Disabled                              Debug: Urgent\n": "off",
		"": "", "Status:\n": "", "Status: Unknown\n": "", "pfctl: /dev/pf: Permission denied\n": ""} {
		if on, err := Enabled(text); on != (want == "on") || (err != nil) != (want == "") {
			t.Errorf("%q: %t, %v", text, on, err)
		}
	}
	names, err := Names("  com.apple\n  acme.runners\n\nfail2ban")
	if err != nil || !slices.Equal(names, []string{"com.apple", "acme.runners", "fail2ban"}) {
		t.Errorf("%q, %v", names, err)
	}
	if _, err := Names("a b\n"); err == nil {
		t.Error("two words are a name")
	}
	held, err := Addresses("   192.0.2.7\n   10.0.0.0/8\n")
	if err != nil || held != "10.0.0.0/8, 192.0.2.7/32" {
		t.Errorf("%v, %v", held, err)
	}
	if _, err := Addresses("pfctl: Table does not exist.\n"); err == nil {
		t.Error("a message is a table's contents")
	}
	// A rule of someone's whose label has a quote in it hides no anchor.
	if points, err := Points("pass all label \"a\" \"\nanchor \"f2b\" all\n"); err != nil || !slices.Equal(points, []Point{FilterPoint("f2b")}) {
		t.Errorf("%q, %v", points, err)
	}
	c, err := Parse(stock + "table <a> const { 10.0.0.1 }\n # table <b>\n")
	defined := c.Tables()
	if err != nil || !slices.Equal(defined, []string{"fail2ban", "a"}) {
		t.Errorf("%q, %v", defined, err)
	}
}

// vmnet holds the anchors of a Mac with virtual machines: macOS adds its own to those of the file.
const vmnet = "scrub-anchor \"com.apple/*\" all fragment reassemble\nanchor \"com.apple/*\" all\nanchor \"com.apple.internet-sharing\" all\n" +
	"block drop in proto tcp from <fail2ban> to any\nblock drop in proto udp from <fail2ban> to any\nanchor \"acme.runners\" all\n" +
	"nat-anchor \"com.apple/*\" all\nnat-anchor \"com.apple.internet-sharing\" all\nrdr-anchor \"com.apple.internet-sharing\" all\nrdr-anchor \"com.apple/*\" all\n"

func TestLoadFile(t *testing.T) {
	t.Parallel()
	live, err := Points(vmnet)
	if err != nil || len(live) != 8 {
		t.Fatalf("%v, %v", live, err)
	}
	conf := stock + "anchor \"f2b\"\nload anchor \"f2b\" from \"/etc/pf.anchors/f2b\"\n" + Block(name)
	got, err := load(conf, name, []string{legacy}, append(live, Point{"anchor", legacy}, Point{"nat-anchor", "own"}))
	if err != nil {
		t.Fatal(err)
	}
	_, got, _ = strings.Cut(got, "# com.apple anchor point\n#\n")
	expect(t, "the file", `scrub-anchor "com.apple/*"
# live: scrub-anchor "com.apple.internet-sharing"
nat-anchor "com.apple/*"
# live: nat-anchor "com.apple.internet-sharing"
rdr-anchor "com.apple/*"
# live: rdr-anchor "com.apple.internet-sharing"
nat-anchor "own"
dummynet-anchor "com.apple/*"
anchor "com.apple/*"
# live: anchor "com.apple.internet-sharing"
load anchor "com.apple" from "/etc/pf.anchors/com.apple"
table <fail2ban> persist
block drop in proto { tcp, udp } from <fail2ban> to any
anchor "f2b"
anchor "acme.runners"
`, got)
	without, err := load(conf, "", []string{name, legacy}, live)
	if err != nil || strings.Contains(without, name) || !strings.Contains(without, `nat-anchor "com.apple.internet-sharing"`) {
		t.Errorf("%v\n%s", err, without)
	}
	for _, bad := range []string{"anchor \"a\\\"b\" all\n", "anchor \"\" all\n", "anchor \"a\n", "nat-anchor 'a\"b'\n"} {
		if p, err := Points(bad); err == nil {
			t.Errorf("%q has %q", bad, p)
		}
	}
}

// TestLoadFileProperties: whatever is live and wherever our lines were, every
// point is in the file once, the parts are in order, and nothing else is lost.
func TestLoadFileProperties(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		conf := rapid.SampledFrom([]string{"", stock, stock + Block(name), commented(legacy) + stock, "nat-anchor \"com.apple/*\"\n", "set skip on lo0\npass in\n",
			"scrub in\npass in \\\n", Block(name) + "pass in quick on lo0\n", "ext = \"en0\"\ntable <x> persist\nblock in from <x>\n"}).Draw(t, "conf")
		point := rapid.Custom(func(t *rapid.T) Point {
			return Point{rapid.SampledFrom([]string{"anchor", "nat-anchor", "rdr-anchor", "binat-anchor", "scrub-anchor", "dummynet-anchor"}).Draw(t, "kind"), rapid.SampledFrom([]string{"com.apple/*", "com.apple.internet-sharing", "f2b", name, legacy}).Draw(t, "name")}
		})
		live := rapid.SliceOfN(point, 0, 8).Draw(t, "live")
		got, err := load(conf, name, []string{legacy}, live)
		if err != nil {
			t.Fatal(err)
		}
		c, err := Parse(got)
		if err != nil {
			t.Fatal(err)
		}
		last := anywhere
		seen := map[Point]int{}
		for _, s := range c.all {
			if at := s.section(); at != anywhere {
				if at < last && s.section() != shaping {
					t.Fatalf("%q is out of order in\n%s", s.text, got)
				}
				last = at
			}
			if s.evaluates() {
				seen[s.Point]++
			} else if s.Kind == loadAnchor && !s.IsApple() {
				t.Fatalf("%q loads rules", s.text)
			}
		}
		for _, p := range live {
			if own := p.Name == name || p.Name == legacy || p.Name == VMNet; !own && seen[p] != 1 {
				t.Fatalf("%v is %d times in\n%s", p, seen[p], got)
			}
		}
		if seen[Point{filterPoint, name}] != 1 {
			t.Fatalf("the anchor is not evaluated once:\n%s", got)
		}
	})
}

func FuzzListings(f *testing.F) {
	for _, seed := range []string{"", vmnet, "block drop quick inet from <vm_sources:1> to 169.254.169.254\n", "Status: Enabled for 1\n", "   10.0.0.0/8\n", "anchor \"_1\" all {\n pass\n}\n", "\x00{", "<:>", "block <a:1>"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if rules, err := LiveRules(text); err == nil {
			again, err := LiveRules(strings.Join(rules, "\n"))
			if err != nil || !slices.Equal(rules, again) {
				t.Fatalf("%q is normalised to %q and then to %q, %v", text, rules, again, err)
			}
		}
		if held, err := Addresses(text); err == nil && strings.Count(held, ",") > len(text) {
			t.Fatalf("%q holds %v", text, held)
		}
		if names, err := Names(text); err == nil && slices.ContainsFunc(names, func(n string) bool { return strings.ContainsAny(n, " \n") }) {
			t.Fatalf("%q names %q", text, names)
		}
		live, err := Points(text)
		if err != nil {
			return
		}
		if got, err := load(stock, name, nil, live); err != nil || len(got) < len(stock) {
			t.Fatalf("%q as live points: %v\n%s", text, err, got)
		}
	})
}
