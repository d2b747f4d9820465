package plan_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/macfleet/macfleet/plan"
)

// TestCodesAreOneEach: a code is declared once, says what it means, and compares.
func TestCodesAreOneEach(t *testing.T) {
	t.Parallel()
	all := plan.Codes()
	if len(all) < 150 || !slices.IsSortedFunc(all, func(a, b plan.Code) int { return strings.Compare(a.String(), b.String()) }) {
		t.Fatalf("%d codes, or not sorted", len(all))
	}
	for _, c := range all {
		if c.Meaning() == "" || c.Home() == "" || c.Severity() != plan.NotDrift && !slices.Contains(plan.Severities(), c.Severity()) {
			t.Errorf("%s: severity %q, meaning %q, home %q", c, c.Severity(), c.Meaning(), c.Home())
		}
	}
	defer func() {
		if recover() == nil {
			t.Error("a second declaration of one name is taken")
		}
	}()
	plan.NewCode("disk-full", plan.Critical, "again")
}

// TestCodeAsText: a record of a newer macfleet may hold codes that this one lacks.
func TestCodeAsText(t *testing.T) {
	t.Parallel()
	var got struct {
		Known, New, None plan.Code
	}
	if err := json.Unmarshal([]byte(`{"Known":"disk-full","New":"of-tomorrow","None":""}`), &got); err != nil {
		t.Fatal(err)
	}
	if got.Known != plan.CodeDiskFull || got.None != (plan.Code{}) || got.New == got.Known || got.New.Severity() != plan.Warning {
		t.Errorf("%+v", got)
	}
	back, err := json.Marshal(got)
	if err != nil || string(back) != `{"Known":"disk-full","New":"of-tomorrow","None":""}` {
		t.Errorf("%s %v", back, err)
	}
	if x := plan.CodeDiskFull.Trouble("full"); x.Code != plan.CodeDiskFull || x.Text != "full" || x.Remedy != plan.CodeDiskFull.Remedy() || x.Remedy == "" {
		t.Errorf("%+v", x)
	}
}
