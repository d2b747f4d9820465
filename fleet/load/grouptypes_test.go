package load

import (
	"slices"
	"testing"
)

// TestGroupTypes: a list of types is kept in its order, the preferred one first, and a fault in the type is reported at the list.
func TestGroupTypes(t *testing.T) {
	t.Parallel()
	c := mustLoad(t, one(base+`
fleet "a" {
  os = "Tahoe"
  group "m" {
    types    = ["M4-S", "M2-L"]
    replicas = 1
  }
  group "n" {
    type     = "M2-L"
    replicas = 1
  }
}
`), Options{}).Config
	several, single := c.Fleets[0].Groups[0], c.Fleets[0].Groups[1]
	if !slices.Equal(several.Types(), []string{"M4-S", "M2-L"}) || several.TypeText() != "M4-S or M2-L" || !several.Accepts("M2-L") || several.Accepts("M1-M") {
		t.Errorf("%+v", several)
	}
	if !slices.Equal(single.Types(), []string{"M2-L"}) || single.Accepts("M4-S") {
		t.Errorf("%+v", single)
	}
	if at := several.Sources.Of("type"); at.Line == 0 {
		t.Errorf("the type is at %+v", at)
	}
}
