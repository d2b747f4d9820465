package plan_test

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/plan"
)

// TestMarkerText pins the file's form: markers outlive the program that wrote
// them.
func TestMarkerText(t *testing.T) {
	t.Parallel()
	m := plan.Marker{Configuration: "acme", Environment: "prod", Name: first, Fleet: "macos", Group: "m2", ServerID: serverID(1),
		Serial: "C0700001", Version: "0.1.0", Steps: map[plan.StepID]plan.Digest{"beta": {Wanted: "w", Facts: "f"}, "alpha": {}}}
	got := must(m.Encode())
	const want = `{
  "configuration": "acme",
  "environment": "prod",
  "name": "acme-prod-macos-m2-00001",
  "fleet": "macos",
  "group": "m2",
  "server_id": "00001000-0000-4000-8000-000000000001",
  "serial": "C0700001",
  "version": "0.1.0",
  "steps": {
    "alpha": {
      "wanted": "",
      "facts": ""
    },
    "beta": {
      "wanted": "w",
      "facts": "f"
    }
  }
}
`
	expect(t, "marker", want, got)
	if o := m.Owner(); o != (fleet.Owner{Name: "acme", Environment: "prod"}) {
		t.Errorf("owner %+v", o)
	}
}

func TestParseMarker(t *testing.T) {
	t.Parallel()
	const least = `{"configuration":"acme","name":"n","server_id":"s"}`
	for fault, texts := range map[string][]string{
		"": {least, "\n\t " + least + " \n\n", `{"configuration":"acme","name":"n","server_id":"s","epoch":7,"holds":[{}]}`}, // fields of a later version
		"not a marker": {"", " \n", "\x00\xff\x00", "no such file", least[:len(least)-1], "[" + least + "]", `"acme"`,
			`{"configuration":"acme","name":1,"server_id":"s"}`, `{"configuration":"acme","name":"n","server_id":"s","steps":[]}`,
			`{"configuration":"acme","name":"n","server_id":"s","steps":{"a":"x"}}`},
		"after top-level value": {least + " x", least + "}", least + least, least + "\n" + least + "\n"},
		"names no": {"null", "{}", `{"name":"n","server_id":"s"}`, `{"configuration":"acme","server_id":"s"}`, `{"configuration":"acme","name":"n"}`,
			`{"configuration":"acme","name":"","server_id":"s"}`},
	} {
		for _, text := range texts {
			m, err := plan.ParseMarker(text)
			if (err != nil) != (fault != "") || err != nil && !strings.Contains(err.Error(), fault) {
				t.Errorf("%s: %v, want %q", text, err, fault)
				continue
			}
			want := plan.Marker{}
			if fault == "" {
				want = plan.Marker{Configuration: "acme", Name: "n", ServerID: "s"}
			}
			expect(t, text, want, m)
		}
	}
}

func markers() *rapid.Generator[plan.Marker] {
	text := rapid.StringOf(rapid.Rune().Filter(func(r rune) bool { return utf8.ValidRune(r) }))
	some := rapid.Custom(func(t *rapid.T) string { return text.Draw(t, "text") + "x" })
	return rapid.Custom(func(t *rapid.T) plan.Marker {
		steps := rapid.MapOfN(rapid.Map(text, func(s string) plan.StepID { return plan.StepID(s) }),
			rapid.Custom(func(t *rapid.T) plan.Digest {
				return plan.Digest{Wanted: text.Draw(t, "wanted"), Facts: text.Draw(t, "facts")}
			}), 0, 4)
		return plan.Marker{Configuration: some.Draw(t, "configuration"), Environment: text.Draw(t, "environment"),
			Name: some.Draw(t, "name"), Fleet: text.Draw(t, "fleet"), Group: text.Draw(t, "group"), ServerID: some.Draw(t, "server"),
			Serial: text.Draw(t, "serial"), ClusterUID: text.Draw(t, "cluster"), Version: text.Draw(t, "version"), Steps: steps.Draw(t, "steps")}
	})
}

func TestMarkerRoundTrip(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		m := markers().Draw(t, "marker")
		text := must(m.Encode())
		got, err := plan.ParseMarker(text)
		if err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		if diff := cmp.Diff(m, got, cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("(-want +got):\n%s", diff)
		}
		if again, _ := got.Encode(); again != text || !strings.HasSuffix(text, "}\n") || !json.Valid([]byte(text)) {
			t.Fatalf("%q is written again as %q", text, again)
		}
		if _, err := plan.ParseMarker(text[:rapid.IntRange(0, len(text)-2).Draw(t, "cut")]); err == nil {
			t.Fatal("a cut marker is read")
		}
	})
}

// TestMarkerWith: entering a record touches nothing but the step and the version,
// and not the marker it is entered into.
func TestMarkerWith(t *testing.T) {
	t.Parallel()
	old := plan.Marker{Configuration: "acme", Name: first, ServerID: "s", Version: "0.0.1",
		Steps: map[plan.StepID]plan.Digest{"alpha": {Wanted: "1"}, "beta": {Wanted: "2"}}}
	got := old.With("alpha", plan.Digest{Wanted: "3"}).With("gamma", plan.Digest{Wanted: "4"})
	want := old
	want.Version = fleet.Version
	want.Steps = map[plan.StepID]plan.Digest{"alpha": {Wanted: "3"}, "beta": {Wanted: "2"}, "gamma": {Wanted: "4"}}
	expect(t, "with", want, got)
	expect(t, "the old one", map[plan.StepID]plan.Digest{"alpha": {Wanted: "1"}, "beta": {Wanted: "2"}}, old.Steps)
	expect(t, "without steps", map[plan.StepID]plan.Digest{"a": {}}, plan.Marker{}.With("a", plan.Digest{}).Steps)
}

func TestDigestOf(t *testing.T) {
	t.Parallel()
	d := plan.DigestOf("a", "b")
	expect(t, "digest", plan.Digest{
		Wanted: "sha256:ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb",
		Facts:  "sha256:3e23e8160039594a33894f6564e1b1348bbd7a0088d42c4acb73eeaed59c009d"}, d)
}

func TestDisruptionString(t *testing.T) {
	t.Parallel()
	for d, want := range map[plan.Disruption]string{plan.NoDisruption: "none", plan.Restart: "restart", plan.Drain: "drain",
		plan.Reboot: "reboot", plan.Wipe: "wipe"} {
		if got := d.String(); got != want {
			t.Errorf("%d is %q, want %q", d, got, want)
		}
	}
}

func TestSigns(t *testing.T) {
	t.Parallel()
	for k, want := range map[plan.Kind]plan.Sign{plan.ClaimServer: "+", plan.CreateMarker: "+", plan.RenameServer: "~", plan.RunStep: "~", plan.ReleaseServer: "-"} {
		if got := k.Sign(); got != want {
			t.Errorf("%s is %q, want %q", k, got, want)
		}
	}
}

func TestClaimSame(t *testing.T) {
	t.Parallel()
	base := plan.ClaimOf(fleet.Owner{Name: "acme", Environment: "prod"}, first, "s")
	for name, tc := range map[string]struct {
		edit func(*plan.Claim)
		same bool
	}{
		"itself":        {func(*plan.Claim) {}, true},
		"another nonce": {func(c *plan.Claim) { c.Nonce = "n" }, true},
		"configuration": {func(c *plan.Claim) { c.Configuration = "x" }, false},
		"environment":   {func(c *plan.Claim) { c.Environment = "" }, false},
		"name":          {func(c *plan.Claim) { c.Name = second }, false},
		"server":        {func(c *plan.Claim) { c.ServerID = "t" }, false},
	} {
		other := base
		tc.edit(&other)
		if base.Same(other) != tc.same || other.Same(base) != tc.same {
			t.Errorf("%s: same %t", name, base.Same(other))
		}
	}
}

// FuzzParseMarker never panics, and a marker that was read is written and read
// again as it was.
func FuzzParseMarker(f *testing.F) {
	f.Add(`{"configuration":"acme","environment":"prod","name":"acme-prod-macos-m2-00001","server_id":"id-1","steps":{"power":{"wanted":"sha256:1","facts":"sha256:2"}}}`)
	f.Add(`{"configuration":"acme","name":"n","server_id":"s","steps":null,"version":"\ud800"}`)
	f.Add(`{"configuration":1}`)
	f.Add("")
	f.Fuzz(func(t *testing.T, text string) {
		m, err := plan.ParseMarker(text)
		if err != nil {
			return
		}
		encoded := must(m.Encode())
		again, err := plan.ParseMarker(encoded)
		if err != nil {
			t.Fatalf("%v: %s", err, encoded)
		}
		expect(t, "read again", m, again)
	})
}
