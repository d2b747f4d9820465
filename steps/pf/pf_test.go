package pf

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// stock is what a provider's Mac has: Apple's file, and lines of the provider.
const stock = `#
# Default PF configuration file.
#
# See pf.conf(5) for syntax.
#

#
# com.apple anchor point
#
scrub-anchor "com.apple/*"
nat-anchor "com.apple/*"
rdr-anchor "com.apple/*"
dummynet-anchor "com.apple/*"
anchor "com.apple/*"
load anchor "com.apple" from "/etc/pf.anchors/com.apple"
table <fail2ban> persist
block drop in proto { tcp, udp } from <fail2ban> to any
`

const (
	name   = "acme.runners"
	legacy = "old.runners"
)

func bare(n string) string {
	return `anchor "` + n + "\"\n" + `load anchor "` + n + `" from "/etc/pf.anchors/` + n + "\"\n"
}

func commented(n string) string {
	return "# VM egress filter — see /etc/pf.anchors/" + n + "\n" + bare(n)
}

func expect[T any](t testing.TB, what string, want, got T) {
	t.Helper()
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("%s (-want +got):\n%s", what, d)
	}
}

func TestRewrite(t *testing.T) {
	t.Parallel()
	block := Block(name)
	for _, tc := range []struct{ what, conf, rest string }{
		{"empty", "", ""},
		{"stock", stock, stock},
		{"settled", stock + block, stock},
		{"the block twice", stock + block + block, stock},
		{"the block apart", block + stock + block, stock},
		{"bare", stock + bare(name), stock},
		{"bare with its comment", stock + "\n" + commented(name), stock + "\n"},
		{"legacy block with a comment in it", stock + "# BEGIN " + legacy + "\n# filter\n" + bare(legacy) + "# END " + legacy + "\n", stock},
		{"BEGIN without END", "# BEGIN " + name + "\n" + bare(name) + stock, stock},
		{"BEGIN without END, then a whole block", "# BEGIN " + name + "\n" + bare(name) + stock + block, stock},
		{"BEGIN without END, and END far behind", "# BEGIN " + name + "\n" + stock + "# END " + name + "\n", stock},
		{"only BEGIN, at the end", stock + "# BEGIN " + name, stock},
		{"a stray END", "# END " + name + "\n" + stock, stock},
		{"BEGIN of one, END of another", "# BEGIN " + name + "\n# END " + legacy + "\n" + stock, stock},
		{"a foreign line inside the marks", "# BEGIN " + name + "\npass quick on lo0\n" + bare(name) + "# END " + name + "\n", "pass quick on lo0\n"},
		{"odd spacing", "\t#BEGIN  " + name + " \n  anchor\t\"" + name + "\"  # on\n load  anchor  \"" + name + "\"   from \"/x\"\n##  END " + name + "\t\n" + stock, stock},
		{"unquoted", "anchor " + name + "\nload anchor " + name + " from \"/x\"\nanchor '" + name + "' all\n", ""},
		{"joined lines", "anchor \\\n  \"" + name + "\"\nload \\\nanchor \"" + name + "\" \\\n from \"/x\"\n" + stock, stock},
		{"CRLF", "pass in\r\n# BEGIN " + name + "\r\nanchor \"" + name + "\"\r\n# END " + name + "\r\nblock out\r\n", "pass in\r\nblock out\r\n"},
		{"no last newline", "pass in\n" + strings.TrimSuffix(bare(name), "\n"), "pass in\n"},
		{"foreign without last newline", "pass in", "pass in\n"},
		{"ends in a joined line", "pass in \\\n", "pass in \\\n\n"},
		{"ends in a backslash", "pass in \\", "pass in \\\n\n"},
		{"a comment ends in a backslash", "# see \\", "# see \\\n\n"},
		{"two backslashes", "# see \\\\\n", "# see \\\\\n"},
		{"a comment hides a line", "# see \\\nanchor \"" + name + "\"\n", "# see \\\nanchor \"" + name + "\"\n"},
		{"other anchors", "anchor \"acme\"\nanchor \"acme.runners.too\"\nanchor \"acme.runners/child\"\nload anchor \"f2b\" from \"/x\"\n",
			"anchor \"acme\"\nanchor \"acme.runners.too\"\nanchor \"acme.runners/child\"\nload anchor \"f2b\" from \"/x\"\n"},
		{"a label of the name", "pass in label \"" + name + "\"\n", "pass in label \"" + name + "\"\n"},
		{"a child of another anchor", "anchor \"f2b\" {\n  anchor \"" + name + "\"\n}\n", "anchor \"f2b\" {\n  anchor \"" + name + "\"\n}\n"},
		{"a translation point of the name", "nat-anchor \"" + name + "\"\n" + stock, stock},
		{"a comment that is another's", "# not macfleet's\n" + bare(name), "# not macfleet's\n"},
		{"a comment far above", "# about " + name + "\n\n" + bare(name), "# about " + name + "\n\n"},
	} {
		got, err := rewrite(tc.conf)
		if err != nil {
			t.Fatalf("%s: %v", tc.what, err)
		}
		expect(t, tc.what, tc.rest, strings.Replace(got, block, "", 1))
		sane(t, tc.conf, got)
		if (tc.conf == got) != settled(tc.conf) {
			t.Errorf("%s: settled = %t, and rewriting changes it: %t", tc.what, settled(tc.conf), tc.conf != got)
		}
	}
}

func TestRewriteRefuses(t *testing.T) {
	t.Parallel()
	for conf, want := range map[string]string{
		"pass in\nblock from { 10.0.0.1\n":              "line 2: a brace",
		"pass in\n\npass label \"x\n":                   "line 3: a quotation",
		"anchor \"" + name + "\" {\n pass in\n}\n":      "line 1 defines rules",
		"pass in\nanchor \"" + legacy + "\" { pass }\n": "line 2 defines rules",
	} {
		for _, f := range []func() error{
			func() error { _, err := rewrite(conf); return err },
			func() error { _, err := remove(conf); return err },
			func() error { _, err := inspect(conf); return err },
			func() error { _, err := load(conf, name, []string{legacy}, nil); return err },
		} {
			if err := f(); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%q: %v, want %q", conf, err, want)
			}
		}
	}
}

func TestInspect(t *testing.T) {
	t.Parallel()
	block := Block(name)
	for _, tc := range []struct {
		what, conf string
		want       Form
	}{
		{"stock", stock, Form{}},
		{"settled", stock + block, Form{Blocks: 1, Settled: true}},
		{"a filter rule behind it", stock + block + "block in quick from 192.0.2.1\n", Form{Blocks: 1, Settled: true}},
		{"a table behind it", stock + block + "table <x> persist\n", Form{Blocks: 1, Settled: true}},
		{"without the last newline", stock + strings.TrimSuffix(block, "\n"), Form{Blocks: 1, Settled: true}},
		{"a translation behind it", stock + block + "nat-anchor \"f2b\"\n", Form{Blocks: 1}},
		{"twice", block + stock + block, Form{Blocks: 2}},
		{"bare and marked", stock + bare(name) + block, Form{Blocks: 1, Bare: 2}},
		{"only bare", stock + bare(name), Form{Bare: 2}},
		{"no END", "# BEGIN " + name + "\n" + bare(name), Form{Bare: 2, Unclosed: true}},
		{"stray END", stock + block + "# END " + name + "\n", Form{Blocks: 1, Unclosed: true}},
		{"legacy marked", stock + Block(legacy), Form{Legacy: []string{legacy}}},
		{"legacy bare and macfleet's block", stock + bare(legacy) + block, Form{Blocks: 1, Bare: 2, Legacy: []string{legacy}}},
		{"an edited block", strings.Replace(block, "/etc/pf.anchors/", "/tmp/", 1), Form{Blocks: 1}},
		{"a block without lines", "# BEGIN " + name + "\n# END " + name + "\n", Form{Blocks: 1}},
	} {
		got, err := inspect(tc.conf)
		if err != nil {
			t.Fatalf("%s: %v", tc.what, err)
		}
		expect(t, tc.what, tc.want, got)
		if got.Absent() != (tc.what == "stock") {
			t.Errorf("%s: absent = %t", tc.what, got.Absent())
		}
	}
}

// macfleet's are forms that names of macfleet's may have: none of them outlives a rewrite.
func ours(t *rapid.T) string {
	n := rapid.SampledFrom([]string{name, legacy}).Draw(t, "name")
	return rapid.SampledFrom([]string{
		Block(n), Block(n) + Block(n), bare(n), commented(n), commented(n) + Block(n), "# END " + n + "\n",
		"# BEGIN " + n + "\n" + bare(n) + "pass out\n", "# BEGIN " + n + "\npass out\n", "\tanchor  " + n + " all # on\n",
		"load anchor \\\n\"" + n + "\" from \"/x\"\n", "# BEGIN " + n + "\r\n" + "anchor \"" + n + "\"\r\n# END " + n + "\r\n",
		"nat-anchor '" + n + "'\n", "#BEGIN " + n + "\n\n# why\n" + bare(n) + "\n# END  " + n + "\n",
	}).Draw(t, "form")
}

// foreign are lines that stay as they are.
func foreign(t *rapid.T) string {
	return rapid.SampledFrom([]string{
		stock, "\n", "\r\n", "# a comment\n", "# BEGIN other\n", "# END other\n", "anchor \"f2b\"\n", "pass in \\\n  quick on lo0\n",
		"block drop in from { 192.0.2.1,\n 192.0.2.2 } to any\n", "anchor \"f2b\" {\n# inside\n pass\n}\n", "pass in label \"a # b\"\n",
		"ext_if = \"en0\"\n", "set skip on lo0\r\n", "# caf\xc3\xa9 \xff\n", "  \t\n", "nonsense ! here (\n", "anchor \"acme.runners2\"\n",
	}).Draw(t, "line")
}

// TestRewriteProperties mixes what is macfleet's with what is not, in any order.
func TestRewriteProperties(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var conf, rest strings.Builder
		for range rapid.IntRange(0, 12).Draw(t, "parts") {
			if rapid.Bool().Draw(t, "ours") {
				form := ours(t)
				conf.WriteString(form)
				if strings.HasSuffix(form, "pass out\n") {
					rest.WriteString("pass out\n")
				}
				continue
			}
			line := foreign(t)
			conf.WriteString(line)
			rest.WriteString(line)
		}
		got, err := rewrite(conf.String())
		if err != nil {
			t.Fatal(err)
		}
		if strings.Count(got, Block(name)) != 1 || strings.Replace(got, Block(name), "", 1) != rest.String() {
			t.Fatalf("%q became\n%q, want\n%q and the block", conf.String(), got, rest.String())
		}
		sane(t, conf.String(), got)
	})
}

// sane checks what holds of every pf.conf that can be rewritten.
func sane(t rapid.TB, conf, got string) {
	t.Helper()
	begin, behind, ok := strings.Cut(got, Block(name))
	if !ok {
		t.Fatalf("%q has no block", got)
	}
	rest := begin + behind
	if without, err := remove(got); err != nil || without != rest {
		t.Fatalf("removed: %v, %q, want %q", err, without, rest)
	}
	if again, err := rewrite(got); err != nil || again != got {
		t.Fatalf("rewriting again: %v\n%q\n%q", err, got, again)
	}
	if f, err := inspect(rest); err != nil || !f.Absent() {
		t.Fatalf("%+v, %v is left in %q", f, err, rest)
	}
	if f, err := inspect(got); err != nil || !f.Settled || f.Blocks != 1 {
		t.Fatalf("%+v, %v: %q is not settled", f, err, got)
	}
	was, err := Parse(conf)
	after, odd := Parse(rest)
	if err = errors.Join(err, odd); err != nil {
		t.Fatal(err)
	}
	i, before := 0, was.all
	for _, s := range after.all { // the rest is unchanged, in the same order
		for i < len(before) && before[i].text != s.text && before[i].text != strings.TrimRight(s.text, "\n") && before[i].text+"\n" != s.text {
			i++
		}
		if i == len(before) {
			t.Fatalf("%q was not in %q", s.text, conf)
		}
		i++
	}
}

func FuzzRewrite(f *testing.F) {
	for _, seed := range []string{"", stock, stock + Block(name), commented(name), "# BEGIN " + name + "\n" + stock, "pass \\", "# \\\n", "{", "\"",
		"anchor \\\n\"" + name + "\"\r\n", "load anchor '" + legacy + "'", "# END " + legacy + "\n\n", "anchor \"" + name + "\" { }\n", "\\\\\n", "}{}", "anchor a/\\\nb"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, conf string) {
		c, err := Parse(conf)
		if err != nil {
			return
		}
		if c.text() != conf {
			t.Fatalf("%q was taken apart as %q", conf, c.text())
		}
		got, err := rewrite(conf)
		if err != nil {
			return
		}
		sane(t, conf, got)
		if settled(conf) && !strings.Contains(conf, strings.TrimSuffix(Block(name), "\n")) {
			t.Fatalf("%q counts as settled", conf)
		}
		if _, err := load(conf, name, []string{legacy}, nil); err != nil {
			t.Fatalf("%q can be rewritten and not loaded: %v", conf, err)
		}
	})
}

func rewrite(conf string) (string, error) {
	c, err := Parse(conf)
	if err != nil {
		return "", err
	}
	return c.Rewrite(name, []string{legacy})
}

func remove(conf string) (string, error) {
	c, err := Parse(conf)
	if err != nil {
		return "", err
	}
	return c.Remove([]string{name, legacy})
}

func inspect(conf string) (Form, error) {
	c, err := Parse(conf)
	if err != nil {
		return Form{}, err
	}
	return c.Inspect(name, []string{legacy})
}

func settled(conf string) bool {
	f, err := inspect(conf)
	return err == nil && f.Settled
}

func load(conf, anchor string, legacy []string, live []Point) (string, error) {
	c, err := Parse(conf)
	if err != nil {
		return "", err
	}
	return c.LoadFile(anchor, legacy, live)
}
