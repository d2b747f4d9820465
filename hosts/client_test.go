package hosts

import (
	"testing"
	"time"
)

func TestNewFillsDeadlines(t *testing.T) {
	t.Parallel()
	c := New(Options{Deadlines: Deadlines{Silence: time.Minute}})
	want := DefaultDeadlines()
	want.Silence = time.Minute
	is(t, "deadlines", c.opts.Deadlines, want)
	if c.opts.Prologue != DefaultPrologue || c.opts.Dial == nil {
		t.Error("the prologue or the dialer is not filled in")
	}
}
