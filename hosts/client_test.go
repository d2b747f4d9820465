package hosts

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestNewFillsDeadlines(t *testing.T) {
	t.Parallel()
	c := New(Options{Deadlines: Deadlines{Silence: time.Minute}})
	want := DefaultDeadlines()
	want.Silence = time.Minute
	if diff := cmp.Diff(want, c.opts.Deadlines); diff != "" {
		t.Errorf("deadlines (-want +got):\n%s", diff)
	}
	if c.opts.Prologue != DefaultPrologue || c.opts.Dial == nil {
		t.Error("the prologue or the dialer is not filled in")
	}
}
