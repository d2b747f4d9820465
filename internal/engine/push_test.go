package engine_test

import (
	"slices"
	"testing"
	"time"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/internal/sandbox/mac"
)

// TestPushOutlives: an image is pushed from a builder for six minutes, longer than the five between two collections of a kubelet. Whatever
// a run wants meanwhile, nvram.bin, which Tart opens last, exists at the end, and then the run does it.
func TestPushOutlives(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		change func(*fleet.Config)
		waits  bool // the run cannot do it during the push
		gone   bool // then the virtual machine is deleted on purpose
	}{
		"a roll of the kubelet": {change: func(c *fleet.Config) {
			c.Fleets[0].Groups[0].Spec.TartKubelet.Artifact = sample("tart-kubelet", "0.5.0", "tart-kubelet-0.5.0-darwin-arm64")
		}},
		"another number of Pods": {change: func(c *fleet.Config) { c.Fleets[0].Groups[0].Spec.TartKubelet.MaxPods = new(1) }},
		"a roll of Tart": {change: func(c *fleet.Config) {
			c.Fleets[0].Groups[0].Spec.Tart = &fleet.Tart{Artifact: sample("tart", "2.32.2", "tart-2.32.2.tar.gz")}
		}, waits: true},
		"a release": {change: func(c *fleet.Config) { c.Fleets[0].Groups[0].Replicas = 0 }, waits: true, gone: true},
		"a reclaim": {change: func(c *fleet.Config) { c.Fleets[0].Groups[0].Spec.Disk.Delete = []string{"*"} }, waits: true, gone: true},
	} {
		parallel(t, name, func(t *testing.T) {
			c := nodes(1)
			spec := &c.Fleets[0].Groups[0].Spec
			spec.GithubRunner, spec.Disk = &fleet.GithubRunner{}, &fleet.Disk{OlderThan: new(1)}
			*spec = spec.WithDefaults()
			w, e := converged(t, 3, c)
			m := macOf(t, w, planned(t, e).Hosts[0].Server.ID)
			must(t, m.AddVM("bake"))
			must(t, m.Advance(3*time.Hour))
			must(t, m.StartPush("bake", "registry.acme.dev/images/bake:1"))
			tc.change(c)
			*spec = spec.WithDefaults()
			e = installs(t, w, e)
			e.Drain.Within = 20 * time.Millisecond
			if r := apply(t, e); tc.waits == (len(r.Failures) == 0 && len(planned(t, e).Actions) == 0) {
				t.Errorf("during the push: failures %v, left %v", r.Failures, planned(t, e).Actions)
			}
			for range 7 {
				must(t, m.Advance(time.Minute))
				must(t, m.Settle(t.Context()))
			}
			pushes, err := m.Pushes()
			if err != nil || len(pushes) != 1 || !pushes[0].Ended || pushes[0].Failure != "" {
				t.Errorf("the push came to %+v, %v", pushes, err)
			}
			e.Drain.Within = time.Minute
			if r := apply(t, e); !r.Converged() {
				t.Errorf("after the push: failures %v, left %v", r.Failures, r.After.Actions)
			}
			all, err := m.VMs()
			if there := slices.ContainsFunc(all, func(vm mac.VM) bool { return vm.Name == "bake" }); err != nil || there == tc.gone {
				t.Errorf("the virtual machines are %v, %v", all, err)
			}
		})
	}
}
