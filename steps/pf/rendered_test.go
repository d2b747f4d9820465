package pf

import (
	"strings"
	"testing"
)

func TestIsRendered(t *testing.T) {
	t.Parallel()
	text := spec(t, []string{"192.168.64.0/22"}, "10.0.0.0/8", "172.16.0.0/12").File()
	_, headless, _ := strings.Cut(text, "\n")
	for _, tc := range []struct {
		what, text           string
		rendered, resembling bool
	}{
		{"as rendered", text, true, true},
		{"other networks", strings.Replace(text, "10.0.0.0/8", "10.0.0.0/16", 1), true, true},
		{"networks in another order", strings.Replace(text, "10.0.0.0/8, 172.16.0.0/12", "172.16.0.0/12, 10.0.0.0/8", 1), false, true},
		{"no network", strings.Replace(text, "192.168.64.0/22", "", 1), false, true},
		{"no table", strings.Replace(text, "table <vm_sources>", "table <x>", 1), false, true},
		{"more rules", text + "pass quick\n", false, true},
		{"no header", headless, false, true},
		{"a blank line first", "\n" + text, false, true},
		{"only the header", Header + "\n", false, true},
		{"another file", "table <vm_sources> persist\nblock drop out from <vm_sources>\n", false, false},
		{"nothing", "", false, false},
	} {
		if IsRendered(tc.text) != tc.rendered || Resembles(tc.text) != tc.resembling {
			t.Errorf("%s: rendered %t, resembling %t", tc.what, IsRendered(tc.text), Resembles(tc.text))
		}
	}
}
