package mac

import (
	"bytes"
	"context"
	"errors"
	"slices"

	"github.com/macfleet/macfleet/internal/sandbox/agent"
)

// tend lets the running kubelet manage virtual machines: it ends those of missing and deleted Pods,
// and starts those of Pods that run. It queries the cluster with the machine unlocked.
func (s *session) tend(ctx context.Context) error {
	var guests []guest
	var kubelets []agent.Kubelet
	err := s.visit(func(v *visit) (err error) {
		kubelets = v.announced().All
		guests, err = v.guests()
		return err
	})
	pods := s.machine.world().Pods
	if err != nil || pods == nil || !s.machine.hasPods() {
		return err
	}
	for _, k := range kubelets {
		if !k.Runs() {
			continue
		}
		known, err := pods(k)
		if err != nil {
			continue // a kubelet that the cluster refuses sees no Pods
		}
		return s.visit(func(v *visit) error { return errors.Join(v.reap(guests, known), v.startPods(ctx, guests, known)) })
	}
	return nil
}

// reap ends the virtual machines of Pods that no longer need one.
func (v *visit) reap(guests []guest, known []agent.Pod) error {
	for _, g := range guests {
		if g.Pod == nil || slices.ContainsFunc(known, func(k agent.Pod) bool { return g.Pod.is(k) && k.Wanted() }) {
			continue
		}
		if err := v.removeVM(v.session.users()[0], g.Home, g.VM); err != nil {
			return err
		}
	}
	return nil
}

// startPods starts the missing virtual machines of Pods. If one cannot start, the kubelet tries again
// at the next read. A Pod whose virtual machine ended at a logout or a boot gets it back with its old
// disk.
func (v *visit) startPods(ctx context.Context, guests []guest, known []agent.Pod) error {
	who := v.session.loginUser()
	own := &proc{session: v.session, ctx: ctx, user: who, env: loginEnviron(who)}
	for _, pod := range known {
		has := slices.ContainsFunc(guests, func(g guest) bool { return g.Pod != nil && g.Pod.is(pod) })
		if has || !pod.Runs || !pod.Wanted() {
			continue
		}
		err := v.startVM(tartCall{own, fleetTart, tartHome(own)}, pod.VM(), &podOf{pod.Namespace, pod.Name})
		if err != nil && ctx.Err() != nil {
			return err
		}
	}
	return nil
}

func (p podOf) is(k agent.Pod) bool { return p.Namespace == k.Namespace && p.Name == k.Name }

// hasPods reports, without the machine's lock, whether its kubelet has Pods or a Pod's virtual machine
// runs.
func (m *Machine) hasPods() bool {
	if may := m.world().MayHavePods; may != nil && may() {
		return true
	}
	data, err := m.remembers(guestsRecord)
	return err == nil && bytes.Contains(data, []byte(`"pod":`))
}
