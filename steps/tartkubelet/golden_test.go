package tartkubelet_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/macfleet/macfleet/plan"
	"github.com/macfleet/macfleet/steps/stepstest"
)

var update = flag.Bool("update", false, "write the golden files")

// golden compares a text with the file of that name in testdata/golden.
func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", "golden", name)
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	stepstest.Expect(t, name, string(want), got)
}

// reported is a finding as a person reads it.
func reported(f plan.Finding) string {
	var b strings.Builder
	for _, c := range f.Changes {
		fmt.Fprintf(&b, "%s: %s\n", c.Reason.Code, c.Reason.Text)
		for _, field := range c.Fields {
			fmt.Fprintf(&b, "  %s: %s -> %s\n", field.Name, field.Before, field.After)
		}
		fmt.Fprintf(&b, "  runs %s, %s", c.Command.Name, c.Disruption)
		if c.Delivery != nil {
			fmt.Fprintf(&b, ", needs %s and %d bytes", c.Delivery.Artifact, c.Delivery.Space)
		}
		if c.Input != "" {
			fmt.Fprintf(&b, ", reads %s", c.Input)
		}
		b.WriteString("\n")
	}
	trouble := func(what string, t plan.Trouble) {
		fmt.Fprintf(&b, "%s %s: %s\n  remedy: %s\n", what, t.Code, t.Text, t.Remedy)
	}
	if len(f.Busy) > 0 {
		fmt.Fprintf(&b, "busy: %s\n", plan.TaskTexts(f.Busy))
	}
	if f.Refused != nil {
		trouble("refused", *f.Refused)
	}
	for _, w := range f.Watched {
		trouble("watches", w.Trouble)
	}
	for _, w := range f.Warnings {
		trouble("warns", w)
	}
	return b.String()
}

// TestKubeletPlist is what a builder's job looks like, with all that there is.
func TestKubeletPlist(t *testing.T) {
	t.Parallel()
	c := fullKubelet()
	f := c.finding(t)
	golden(t, "tart_kubelet.plist", f.Changes[len(f.Changes)-1].Command.Args[1])
}
