package plan_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/plan"
)

// TestRecordingKeepsBytes: a tool may print any bytes, and a file of them is a
// test only while it holds them all.
func TestRecordingKeepsBytes(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		printed := rapid.OneOf(rapid.String(), rapid.Custom(func(t *rapid.T) string {
			return string(rapid.SliceOf(rapid.Byte()).Draw(t, "bytes"))
		}), rapid.Just("caf\xe9"), rapid.Just(`{"base64": "AA=="}`))
		want := plan.Facts{
			"alpha.get": inventory.Present(plan.Answer{Exit: rapid.IntRange(0, 255).Draw(t, "exit"), Stdout: printed.Draw(t, "stdout"), Stderr: printed.Draw(t, "stderr")}),
			"beta.get":  inventory.Unread[plan.Answer](printed.Filter(func(s string) bool { return s != "" }).Draw(t, "why")),
		}
		text := must(plan.EncodeRecording(inventory.Server{}, plan.HostSeen{Facts: want}))
		got := must(plan.DecodeRecording(text))
		if d := cmp.Diff(want, got, cmp.AllowUnexported(inventory.Seen[plan.Answer]{})); d != "" {
			t.Fatalf("(-want +got):\n%s\n%s", d, text)
		}
	})
}

// TestRecordingKeepsUnread: a missing reason does not count as an answer.
func TestRecordingKeepsUnread(t *testing.T) {
	t.Parallel()
	text := must(plan.EncodeRecording(inventory.Server{}, plan.HostSeen{Facts: plan.Facts{"alpha.get": {}}}))
	if facts, err := plan.DecodeRecording(text); err != nil || !facts.Get("alpha.get").IsUnread() {
		t.Errorf("%+v, %v", facts, err)
	}
}

func TestRecording(t *testing.T) {
	t.Parallel()
	s := inventory.Server{ID: serverID(1), Name: "globex-prod-1", Address: "198.51.100.7"}
	seen := clean(1)
	seen.Marker = inventory.Present(plan.Marker{Name: "globex-prod-1-old", ServerID: s.ID})
	seen.Facts = plan.Facts{
		"host.serial": inventory.Present(plan.Answer{Stdout: "C0700001"}),
		"alpha.get":   inventory.Present(plan.Answer{Exit: 3, Stdout: "globex-prod-1-old globex-prod-1 198.51.100.7\n", Stderr: "C0700001 " + s.ID}),
		"beta.get":    inventory.Unread[plan.Answer]("needs root"),
	}
	text := must(plan.EncodeRecording(s, seen))
	for _, real := range []string{"globex", "198.51.100.7", "C0700001", s.ID, seen.Key, "host."} {
		if strings.Contains(string(text), real) {
			t.Errorf("%s is in the recording:\n%s", real, text)
		}
	}
	facts := must(plan.DecodeRecording(text))
	a, _ := facts.Get("alpha.get").Get()
	if want := (plan.Answer{Exit: 3, Stdout: "acme-sample acme-sample 192.0.2.1\n", Stderr: "C07SAMPLE1 00000000-0000-4000-8000-000000000000"}); a != want {
		t.Errorf("answer = %+v", a)
	}
	if why := facts.Get("beta.get").Why(); why != "needs root" || len(facts) != 2 {
		t.Errorf("facts = %+v", facts)
	}
	for _, bad := range []string{"", "{}", `{"recording": 2, "answers": {"a": {}}}`, `{"recording": 1}`} {
		if _, err := plan.DecodeRecording([]byte(bad)); err == nil {
			t.Errorf("%q was read", bad)
		}
	}
	if _, err := plan.EncodeRecording(s, plan.HostSeen{Trouble: &plan.Trouble{Text: "no route"}}); err == nil || !strings.Contains(err.Error(), "no route") {
		t.Errorf("a host that was not observed: %v", err)
	}
}
