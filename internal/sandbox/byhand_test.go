package sandbox

import (
	"testing"
)

// TestByHand creates a world whose servers have different names, and Macs with what an older tool left.
func TestByHand(t *testing.T) {
	t.Parallel()
	w, err := Open(t.TempDir(), Seed{Population: ByHand, Hosts: 6})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	}()
	if err := w.Furnish(t.Context()); err != nil {
		t.Fatal(err)
	}
	servers, err := w.cloud.Servers()
	if err != nil {
		t.Fatal(err)
	}
	names, jobs := make(map[string]bool), 0
	for _, s := range servers {
		names[s.Name] = true
		v := &victim{w, s, &record{}}
		if lines, err := v.mainRules(t.Context()); err != nil || len(pointsTo(lines, handAnchor)) != 0 {
			t.Errorf("%s: the live main ruleset calls %s: %v, %v", s.Name, handAnchor, lines, err)
		}
		if rules, err := v.anchorRules(t.Context(), handAnchor); err != nil || rules == "" {
			t.Errorf("%s: the anchor has no rules: %v", s.Name, err)
		}
		machine, err := v.machine()
		if err != nil {
			t.Fatal(err)
		}
		job, loaded, err := machine.Job("system/" + otherLabel)
		if loaded != ownedByController(s) || loaded && job.PID == 0 || err != nil {
			t.Errorf("%s: the old kubelet is loaded: %t, job %+v, %v", s.Name, loaded, job, err)
		}
		if loaded {
			jobs++
		}
	}
	if len(names) != 6 || jobs != 2 {
		t.Errorf("%d names, %d old kubelets", len(names), jobs)
	}
	for _, bad := range []Seed{{Population: "x"}, {Population: ByHand, Hosts: mostByHand + 1}} {
		if _, err := Open(t.TempDir(), bad); err == nil {
			t.Errorf("created %+v", bad)
		}
	}
}
