package plantest_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/macfleet/macfleet/plan/plantest"
)

// TestDigestsStay keeps the digests in the markers of converged hosts. If one changes, every
// such host drifts after an upgrade: do not reword the names and values of settings.
func TestDigestsStay(t *testing.T) {
	t.Parallel()
	_, _, seen := plantest.Converged(1)
	var lines []string
	for _, host := range seen.Hosts {
		marker, _ := host.Marker.Get()
		for step, d := range marker.Steps {
			if !strings.Contains(string(step), "-") { // the others are copies
				lines = append(lines, fmt.Sprintf("%s %.19s %.19s", step, d.Wanted, d.Facts))
			}
		}
	}
	slices.Sort(lines)
	want := strings.TrimSpace(`
auto_login sha256:2624bcb66bb1 sha256:2624bcb66bb1
github_runner sha256:1538be81cea9 sha256:1538be81cea9
hostname sha256:2dc1a3996cad sha256:2dc1a3996cad
power sha256:13ac5b736c1e sha256:13ac5b736c1e
sudo sha256:28b30b86d4e3 sha256:28b30b86d4e3
tart sha256:137533e5ac7a sha256:137533e5ac7a
tart_kubelet sha256:96a37a05d93d sha256:09b5e7e05703
vm_firewall sha256:9bfc879a457a sha256:9bfc879a457a
`)
	if diff := cmp.Diff(want, strings.Join(lines, "\n")); diff != "" {
		t.Error(diff)
	}
}
