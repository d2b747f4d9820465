package plan_test

import (
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
		text, err := plan.EncodeRecording(inventory.Server{}, plan.HostSeen{Facts: want})
		if err != nil {
			t.Fatal(err)
		}
		got, err := plan.DecodeRecording(text)
		if err != nil {
			t.Fatalf("%v:\n%s", err, text)
		}
		if d := cmp.Diff(want, got, cmp.AllowUnexported(inventory.Seen[plan.Answer]{})); d != "" {
			t.Fatalf("(-want +got):\n%s\n%s", d, text)
		}
	})
}

// TestRecordingKeepsUnread: no reason is no answer either.
func TestRecordingKeepsUnread(t *testing.T) {
	t.Parallel()
	text, err := plan.EncodeRecording(inventory.Server{}, plan.HostSeen{Facts: plan.Facts{"alpha.get": {}}})
	if err != nil {
		t.Fatal(err)
	}
	if facts, err := plan.DecodeRecording(text); err != nil || !facts.Get("alpha.get").IsUnread() {
		t.Errorf("%+v, %v", facts, err)
	}
}
