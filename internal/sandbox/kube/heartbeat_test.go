package kube_test

import (
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/macfleet/macfleet/internal/sandbox/agent"
)

func (f *fleet) patchNode(t testing.TB, patch string) {
	t.Helper()
	if _, err := f.admin.CoreV1().Nodes().Patch(t.Context(), "acme-01", types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
}

func (f *fleet) taints(t testing.TB) (all []string) {
	t.Helper()
	for _, one := range f.node(t, "acme-01").Spec.Taints {
		all = append(all, one.ToString())
	}
	return all
}

// A heartbeat restores the kubelet's taint if its key is missing. It keeps other taints and values.
func TestTaintAtHeartbeats(t *testing.T) {
	t.Parallel()
	f := joined(t)
	f.patchNode(t, `{"spec":{"taints":[{"key":"acme.dev/x","effect":"NoExecute"}]}}`)
	equal(t, fmt.Sprint(f.taints(t)), "[acme.dev/x:NoExecute]", "before a heartbeat")
	f.clock.pass(31 * time.Second)
	equal(t, fmt.Sprint(f.taints(t)), "[acme.dev/x:NoExecute tuist.dev/macos=true:NoSchedule]", "after a heartbeat")
	f.patchNode(t, `{"spec":{"taints":[{"key":"tuist.dev/macos","effect":"PreferNoSchedule"}]}}`)
	f.clock.pass(time.Minute)
	equal(t, fmt.Sprint(f.taints(t)), "[tuist.dev/macos:PreferNoSchedule]", "another effect")
}

func TestBareHeartbeats(t *testing.T) {
	t.Parallel()
	f := joined(t)
	f.node(t, "acme-01")
	must(t, f.api.Bare("server-acme-01", true))
	f.patchNode(t, `{"metadata":{"labels":{"acme.dev/fleet":"z"}},"spec":{"taints":null}}`)
	f.clock.pass(10 * time.Minute)
	if got := f.node(t, "acme-01"); got.Labels["acme.dev/fleet"] != "z" || len(got.Spec.Taints) != 0 {
		t.Errorf("labels %v, taints %v", got.Labels, got.Spec.Taints)
	}
	f.start(t, "acme-01", nil)
	if got := f.node(t, "acme-01"); got.Labels["acme.dev/fleet"] != "runners" || len(got.Spec.Taints) != 0 {
		t.Errorf("after a new start: labels %v, taints %v", got.Labels, got.Spec.Taints)
	}
	must(t, f.api.Bare("server-acme-01", false))
	f.clock.pass(31 * time.Second)
	if got := f.taints(t); len(got) != 1 {
		t.Errorf("taints %v", got)
	}
}

// A Mac runs two virtual machines: a third Pod waits until one of them has stopped.
func TestThirdPod(t *testing.T) {
	t.Parallel()
	f := joined(t)
	for _, name := range []string{"a", "b", "c"} {
		must(t, f.api.PutPod("acme-01", "ci", name))
	}
	pods := func() (out string) {
		all, err := f.admin.CoreV1().Pods("ci").List(t.Context(), metav1.ListOptions{})
		must(t, err)
		for _, pod := range all.Items {
			out += pod.Name + " " + string(pod.Status.Phase) + " " + pod.Status.Message + "; "
		}
		return out
	}
	if got := pods(); got != "a Running ; b Running ; c Pending tart run: The number of VMs exceeds the system limit; " {
		t.Error(got)
	}
	if has, err := f.api.HasPods("server-acme-01"); err != nil || !has {
		t.Errorf("the Mac gets no Pods: %v", err)
	}
	must(t, f.admin.CoreV1().Pods("ci").Delete(t.Context(), "a", metav1.DeleteOptions{}))
	if got := pods(); got != "b Running ; c Running ; " {
		t.Error(got)
	}
	all, err := f.api.Pods("acme-01")
	if want := (agent.Pod{Namespace: "ci", Name: "c", Runs: true}); err != nil || len(all) != 2 || all[1] != want {
		t.Errorf("the Mac gets %+v, %v", all, err)
	}
}
