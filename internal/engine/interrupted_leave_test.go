package engine_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/macfleet/macfleet/internal/sandbox"
	"github.com/macfleet/macfleet/internal/worldtest"
	"github.com/macfleet/macfleet/plan"
)

// TestLeaveInterrupted interrupts a Mac that leaves the cluster anywhere: as its kubelet
// goes, its Pods are let go, its Node is deleted, its identity is revoked.
func TestLeaveInterrupted(t *testing.T) {
	t.Parallel()
	before := prepared(t, 3, nodes(1))
	w := opened(t, before)
	e := engineOf(t, w, nodes(1))
	host := planned(t, e).Hosts[0]
	inject(t, w, host.Name, "stuck-terminating-pods")
	for i := 2; i < sandbox.StuckPods; i++ { // two are enough: each costs interruptions
		pod := fmt.Sprintf("/api/v1/namespaces/default/pods/macfleet-sandbox-stuck-%02d-%s", i, host.Server.ID[:8])
		patchObject(t, w, pod, `{"metadata":{"finalizers":null}}`)
	}
	must(t, w.Close())
	leaver := func(t *testing.T) *victim {
		v := victimIn(t, worldtest.Copied(t, before))
		v.spec.Tart, v.spec.TartKubelet = nil, nil
		return v
	}
	clean := leaver(t)
	has := make(map[plan.Kind]bool)
	for _, a := range planned(t, clean.engine).Actions {
		has[a.Kind] = true
	}
	for _, kind := range []plan.Kind{plan.RemoveStep, plan.DeleteNode, plan.RevokeHost, plan.ReleasePods} {
		if !has[kind] {
			t.Errorf("nothing of kind %s is done: %v", kind, has)
		}
	}
	converges(t, clean.engine)
	want := clean.remains(t)
	for _, file := range want {
		if strings.HasPrefix(file, "kubernetes/") && strings.Contains(file, host.Name) {
			t.Errorf("a clean run leaves %s", file)
		}
	}
	eachInterruption(t, 2, func(t *testing.T, n int, interruption interruption) bool {
		return leaver(t).interruptedAt(t, n, interruption, want)
	})
}
