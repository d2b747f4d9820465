package mac

import (
	"maps"
	"slices"
	"time"

	"github.com/macfleet/macfleet/internal/sandbox/agent"
)

// collects reports whether a job's kubelet now collects virtual machines without a Pod. It does so
// every five minutes; missed times count once.
func (j *job) collects(now time.Time) bool {
	return j.Kubelet != nil && j.Kubelet.GC && j.PID == j.Kubelet.PID && !now.Before(j.Swept.Add(collectsEvery))
}

// collection is what one kubelet collects.
type collection struct {
	kubelet agent.Kubelet
	user    user
	home    string
}

// collect lets each due kubelet delete virtual machines without a Pod. It queries the cluster with the
// machine unlocked.
func (s *session) collect() error {
	due, err := s.collections()
	if err != nil {
		return err
	}
	for _, one := range due {
		pods := s.machine.world().Pods
		if pods == nil {
			continue // the Pods are unknown
		}
		known, err := pods(one.kubelet)
		if err != nil {
			continue // a kubelet that the cluster refuses deletes nothing
		}
		err = s.visit(func(v *visit) error { return v.collect(one, known) })
		if err != nil {
			return err
		}
	}
	return nil
}

// collections returns the due collections, and records their time.
func (s *session) collections() (due []collection, err error) {
	err = s.visit(func(v *visit) error {
		return v.changeLaunchd(func(m *manager, now time.Time) error {
			for _, target := range slices.Sorted(maps.Keys(m.Jobs)) {
				j := m.Jobs[target]
				if who, ok := s.jobUser(j); ok && j.collects(now) {
					j.Swept = j.Swept.Add(now.Sub(j.Swept).Truncate(collectsEvery))
					due = append(due, collection{*j.Kubelet, who, j.Home})
				}
			}
			return nil
		})
	})
	return due, err
}

func (v *visit) collect(one collection, pods []agent.Pod) error {
	behind := map[string]bool{}
	for _, pod := range pods {
		behind[pod.VM()] = true
	}
	names, err := v.vmNames(one.user, one.home)
	if err != nil {
		return err
	}
	for _, name := range names {
		if behind[name] {
			continue
		}
		if err := v.removeVM(one.user, one.home, name); err != nil {
			return err
		}
	}
	return nil
}
