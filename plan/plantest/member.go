package plantest

import (
	"fmt"
	"time"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/plan"
	"github.com/macfleet/macfleet/steps/stepstest"
)

// member is one host of a fleet.
type member struct {
	cfg    *fleet.Config
	fleet  fleet.Fleet
	group  fleet.Group
	server inventory.Server
}

// newMember returns the i-th host: the fleets and groups take turns.
func newMember(cfg *fleet.Config, i int) member {
	m := member{cfg: cfg, fleet: cfg.Fleets[i%2]}
	m.group = m.fleet.Groups[i/2%2]
	id := fmt.Sprintf("%05x000-0000-4000-8000-%012x", i, i)
	m.server = inventory.Server{ID: id, Name: cfg.HostName(m.fleet.Name, m.group.Name, id), Type: m.group.Type, Zone: "fr-par-1", Address: "192.0.2.1",
		OSFamily: m.fleet.OS, Status: "ready", Delivered: true, Created: time.Unix(int64(i), 0).UTC()}
	return m
}

func (m member) node() inventory.Node {
	return inventory.Node{Name: m.server.Name, ProviderID: m.server.ProviderID(), Ready: inventory.Ready,
		Labels: map[string]string{"node.kubernetes.io/instance-type": m.server.Type, "topology.kubernetes.io/region": m.server.Region(), "topology.kubernetes.io/zone": m.server.Zone}}
}

func (m member) identity() inventory.Identity {
	return inventory.Identity{Host: m.server.Name, ServiceAccount: stepstest.AccountUID, Secret: "secret-uid", Issued: true, Bound: true}
}

// settled are the answers of a host that was set up.
func (m member) settled() plan.Facts {
	facts := stepstest.SettledFacts(m.server.Name)
	kubelet := stepstest.SettledKubelet(m.server.Name).On(m.server).WithArgs("--disable-vm-gc")
	facts["tart_kubelet.state/m1"] = inventory.Present(kubelet.Answer())
	return facts
}

// seen is what the host answers.
func (m member) seen(f fate, existing []plan.Step, stepsFor plan.StepsFor) plan.HostSeen {
	marker := plan.Marker{Configuration: m.cfg.Name, Environment: m.cfg.Environment, Name: m.server.Name, Fleet: m.fleet.Name, Group: m.group.Name,
		ServerID: m.server.ID, Serial: "C07" + m.server.ID[:5], Version: fleet.Version}
	settled := copies(m.settled(), existing)
	if f.joined {
		marker.Steps = m.records(stepsFor, settled)
	}
	facts := settled
	if !f.settled {
		facts = copies(stepstest.FactoryFacts(), existing)
	}
	return plan.HostSeen{Key: "ssh-ed25519 " + m.server.ID, Fingerprint: "SHA256:" + m.server.ID, Pinned: true, Root: true, Facts: facts,
		Serial: inventory.Present(marker.Serial), OSVersion: inventory.Present("26.3"),
		Marker: inventory.Present(marker), Claim: inventory.Absent[plan.Claim]()}
}

// records are what a marker has after all steps.
func (m member) records(stepsFor plan.StepsFor, settled plan.Facts) map[plan.StepID]plan.Digest {
	h := fleet.Host{Name: m.server.Name, Fleet: m.fleet.Name, Group: m.group.Name, User: m.cfg.SSH.User, Spec: m.group.Spec}
	v := stepstest.View(h, settled)
	v.Server, v.Node, v.Identity = m.server, inventory.Present(m.node()), inventory.Present(m.identity())
	out := make(map[plan.StepID]plan.Digest, Steps)
	for _, step := range stepsFor(h) {
		out[step.ID()] = plan.DigestOf(step.Wanted(), step.Diff(v).Facts)
	}
	return out
}
