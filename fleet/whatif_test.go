package fleet

import (
	"slices"
	"strings"
	"testing"
)

func scalable() *Config {
	return &Config{Fleets: []Fleet{
		{Name: "macos", Groups: []Group{{Name: "m2", Type: "M2-L", Replicas: 2}, {Name: "m4", Type: "M4-S", Replicas: 1}}},
		{Name: "runners", Groups: []Group{{Name: "m2", Type: "M2-L", Replicas: 9}}}}}
}

// TestWhatIf changes a copy, and says what differs.
func TestWhatIf(t *testing.T) {
	t.Parallel()
	c := scalable()
	got, scales, err := c.WhatIf([]string{"runners=12", "macos.m4=0"})
	if err != nil {
		t.Fatal(err)
	}
	want := []Scale{{"runners", "m2", 9, 12}, {"macos", "m4", 1, 0}}
	if !slices.Equal(scales, want) || got.Fleets[1].Groups[0].Replicas != 12 || got.Fleets[0].Groups[1].Replicas != 0 || got.Fleets[0].Groups[0].Replicas != 2 {
		t.Errorf("%+v, %+v", scales, got.Fleets)
	}
	if c.Fleets[1].Groups[0].Replicas != 9 || c.Fleets[0].Groups[1].Replicas != 1 {
		t.Errorf("the configuration itself changed: %+v", c.Fleets)
	}
}

func TestWhatIfFaults(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"runners":      "is not FLEET=N or FLEET.GROUP=N",
		"=3":           "is not FLEET=N",
		"runners=":     "must be from 0 to 1000",
		"runners=-1":   "must be from 0 to 1000",
		"runners=1001": "must be from 0 to 1000",
		"runners=many": "must be from 0 to 1000",
		"runer=3":      `no fleet "runer"; did you mean "runners"?`,
		"builders=3":   `no fleet "builders"; there are macos, runners`,
		"macos=3":      "several groups (m2, m4): name one, such as macos.m2=N",
		"macos.m5=3":   `no group "m5"; did you mean "m2"?`,
	} {
		if _, _, err := scalable().WhatIf([]string{text}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
	if _, _, err := scalable().WhatIf([]string{"runners=3", "runners.m2=4"}); err == nil || !strings.Contains(err.Error(), "given twice") {
		t.Errorf("%v", err)
	}
}
