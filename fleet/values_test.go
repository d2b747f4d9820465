package fleet

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestWithDefaults(t *testing.T) {
	t.Parallel()
	five, off := 5, false
	open := Spec{Hostname: &Hostname{}, Power: &Power{Sleep: &five, RestartAfterPowerLoss: &off}}
	if open.Power.DisplaySleep != nil {
		t.Fatal("the test's own specification has nothing open")
	}
	got := open.WithDefaults()
	want := []Value{
		{"hostname", ""}, {"power", ""}, {"power.sleep", "5"}, {"power.display_sleep", "0"}, {"power.disk_sleep", "0"},
		{"power.screensaver", "0"}, {"power.auto_logout", "0"}, {"power.restart_after_power_loss", "false"}}
	if diff := cmp.Diff(want, got.Values()); diff != "" {
		t.Errorf("values (-want +got):\n%s", diff)
	}
	if open.Power.DisplaySleep != nil {
		t.Error("the specification that was given has changed")
	}
	if diff := cmp.Diff(got, got.WithDefaults()); diff != "" {
		t.Errorf("a second time changes something:\n%s", diff)
	}
	if bare := (Spec{}).WithDefaults(); bare != (Spec{}) {
		t.Errorf("an absent block appeared: %+v", bare)
	}
	on := Spec{Power: &Power{}}.WithDefaults().Power.RestartAfterPowerLoss
	if on == nil || !*on {
		t.Error("a Mac does not come back after a power loss by default")
	}
}

func TestSource(t *testing.T) {
	t.Parallel()
	s := Sources{"power.sleep": {Level: InFleet, File: "fleets.fleet.hcl", Line: 7}}
	if got := s.Of("power.sleep").String(); got != "fleets.fleet.hcl:7" {
		t.Error(got)
	}
	if got := s.Of("power.screensaver"); got.String() != "built in" || got.Level != BuiltIn {
		t.Errorf("%+v", got)
	}
}
