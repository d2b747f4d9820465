package engine_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/internal/engine"
	"github.com/macfleet/macfleet/internal/enginetest"
	"github.com/macfleet/macfleet/internal/scripttest"
	"github.com/macfleet/macfleet/plan"
)

// drawEvidence draws a server: most sources agree about what it is, and each may be absent or contradict.
func drawEvidence(seed uint64) (e evidence) {
	r := rand.New(rand.NewPCG(seed, 50))
	pick := func(all ...string) string { return all[r.IntN(len(all))] }
	one := func(of int) bool { return r.IntN(of) == 0 }
	is := pick("own", "own", "own", "gone", "theirs", "outside", "pool")
	source := func(others ...string) string {
		switch {
		case one(6):
			return pick(others...)
		case one(5), is == "pool":
			return ""
		}
		return is
	}
	e.name = either(one(4), pick("own", "gone", "theirs", "outside", "pool"), is)
	e.marker = source("", "own", "gone", "theirs")
	if e.marker == "outside" {
		e.marker = ""
	}
	e.pin, e.node, e.copy = source("", "own", "gone", "theirs", "outside"), source("", "own", "gone", "theirs", "outside"), source("", "own", "theirs", "outside")
	if one(3) && e.pin != "" && e.pin != "outside" {
		e.stage = []plan.Stage{plan.Leaving, plan.Wiping, plan.Wiped, plan.Released}[r.IntN(4)]
	}
	e.otherPin, e.otherCopy, e.otherNote, e.note, e.bound = one(8), one(8), one(8), one(2), one(2)
	e.note, e.identity = e.note && e.node != "", e.node != "" && e.node != "theirs" && e.node == e.name && one(2)
	e.met, e.away, e.lost, e.ready, e.works = one(4), one(8), one(10), one(2), one(8)
	if e.away { // a marker that cannot be read says nothing, and a release from wiping on is finished whatever its Node says
		e.works, e.marker = e.works && e.stage != plan.Wiping && e.stage != plan.Wiped, ""
	}
	e.replicas, e.before = 1+r.IntN(2), pick("", "f0.m2=2", "f0.m2=1")
	return e
}

// either returns a if is, and b otherwise.
func either(is bool, a, b string) string {
	if is {
		return a
	}
	return b
}

// TestDrawnServers plans and applies for a drawn server next to a member and a free server, and an oracle judges what was done to all of them,
// what is shown, and what is advised.
func TestDrawnServers(t *testing.T) {
	t.Parallel()
	rows, done := make(map[string]int), make(map[string]int)
	for seed := range uint64(20 * seeds) {
		if !scripttest.Mine(int(seed)) && !slices.Contains([]uint64{663, 4502, 9366}, seed) { // each found a fault
			continue
		}
		e := drawEvidence(seed)
		var row string
		var wrong []string
		synctest.Test(t, func(t *testing.T) { row, wrong = judged(t, e, done) })
		if rows[row]++; len(wrong) > 0 {
			t.Errorf("seed %d: %q\n%+v\n%+v", seed, wrong, e, oracle(e))
		}
	}
	t.Log(rows, done)
	if len(done) < 7 {
		t.Errorf("of what runs may do only %v was done", done)
	}
	for _, row := range []string{"pool", "member", "leaving", "lost", "orphan", "surplus", "foreign", "stray"} {
		if rows[row] == 0 {
			t.Errorf("no %s was drawn", row)
		}
	}
}

// drawnWorld is a member, a free server, and the subject with its evidence.
func drawnWorld(t *testing.T, e evidence) (w *enginetest.World, member, free, subject *enginetest.Machine, eng *engine.Engine) {
	t.Helper()
	w = enginetest.New(3, 1, everyoneAtOnce)
	w.Config.Guardrails.MaxWipes = 3
	w.Things = func(fleet.Host) []enginetest.Thing {
		return []enginetest.Thing{{Key: "sudo", Value: "yes", Input: plan.LoginPassword, Grants: true},
			{Key: "agent", Value: "v1", Class: plan.Restart, Root: true, Node: true, Input: plan.Kubeconfig}}
	}
	first := w.Engine()
	first.Run = named("first", 1)
	converges(t, first)
	member, free, subject = w.Machines[0], w.Machines[1], w.Machines[2]
	id := subject.Server.ID
	name := func(is string) string {
		return map[string]string{"own": "acme-production-f0-m2-" + id[:5], "gone": "acme-production-gone-m2-" + id[:5], "theirs": "beta-production-f0-m2-" + id[:5],
			"outside": "acme-legacy", "pool": "acme-pool-00"}[is]
	}
	key := func(other bool) string { return either(other, "ssh-ed25519 b3RoZXI=", subject.Key()) }
	w.Change(func() {
		if subject.Server.Name = name(e.name); e.marker != "" {
			m := plan.Marker{Configuration: either(e.marker == "theirs", "beta", "acme"), Environment: "production", Name: name(e.marker),
				Fleet: either(e.marker == "gone", "gone", "f0"), Group: "m2", ServerID: id, Serial: subject.Serial, Version: fleet.Version, ClusterUID: w.Config.ClusterUID}
			text, err := m.Encode()
			must(t, err)
			subject.Mark(text)
		}
		if subject.Away = e.away; e.copy != "" {
			w.Copies = []plan.Pin{{ServerID: id, Name: name(e.copy), Key: key(e.otherCopy)}}
		}
		if e.bound {
			w.Objects = []inventory.Object{{Kind: "ValidatingAdmissionPolicy", Name: "a", State: inventory.ObjectKept}, {Kind: "ValidatingAdmissionPolicyBinding", Name: "b", State: inventory.ObjectKept}}
		}
	})
	must(t, first.Pins.Update(func(all []plan.Pin) []plan.Pin {
		if e.pin != "" {
			all = append(all, plan.Pin{ServerID: id, Name: name(e.pin), Key: key(e.otherPin), Stage: e.stage, Since: time.Now().Add(time.Hour)})
		}
		for i := range all {
			all[i].GroupSize = e.before
		}
		return all
	}))
	if e.node != "" {
		n := inventory.Node{Name: name(e.node), UID: "u", ProviderID: subject.Server.ProviderID()}
		if e.ready {
			n.LastHeartbeat = time.Now().Add(1000 * time.Hour)
		}
		if e.note {
			n.HostKey = plan.KeyNote(key(e.otherNote), plan.Fingerprint(key(e.otherNote)))
		}
		w.AddNode(n)
		if e.works {
			w.RunPod(n.Name, "job")
		}
		if e.identity {
			_, err := first.Cluster.Identify(t.Context(), n.Name)
			must(t, err)
		}
	}
	c := *w.Config
	c.Fleets = slices.Clone(c.Fleets)
	c.Fleets[0].Groups = slices.Clone(c.Fleets[0].Groups)
	c.Fleets[0].Groups[0].Replicas = e.replicas
	w.Config = &c
	eng = w.Engine()
	eng.Run, eng.Install.Every = named("next", 2), 3*time.Minute
	eng.Met = func(ids []string) []string {
		return slices.DeleteFunc(slices.Clone(ids), func(met string) bool { return met != id || !e.met })
	}
	return w, member, free, subject, eng
}

// judged lets a run meet a drawn server, and compares it with the oracle. It returns what the server was.
func judged(t *testing.T, e evidence, counts map[string]int) (row string, wrong []string) {
	t.Helper()
	v := oracle(e)
	w, member, free, subject, eng := drawnWorld(t, e)
	done := make(map[string]bool) // "call server"
	questions := []string{"connect", "observe", "probe", "leave", "ReadBoot", "get", "check rename", "pods", "gone"}
	node := ""
	if e.node != "" {
		all, err := eng.Cluster.Nodes(t.Context())
		must(t, err)
		node = all[slices.IndexFunc(all, func(n inventory.Node) bool { return n.UID == "u" })].Name
	}
	w.OnCall = func(c enginetest.Call) enginetest.Fault {
		if c.What == "list" && e.lost {
			return enginetest.Fault{Before: func() { w.Change(func() { subject.Unlisted = true }) }}
		}
		if slices.Contains(questions, c.What) || c.Name == "" {
			return enginetest.Fault{}
		}
		return enginetest.Fault{Before: func() {
			w.Change(func() {
				for _, m := range w.Machines {
					if c.Name == m.Server.Name || c.Name == m.Server.ID || m == subject && c.Name == node {
						done[fmt.Sprint(c.Place, c.What, " ", m.Server.ID)] = true
					}
				}
			})
		}}
	}
	p, err := eng.Plan(t.Context())
	must(t, err)
	r, err := eng.Apply(t.Context(), p)
	must(t, err)
	did := func(m *enginetest.Machine, place enginetest.Place, calls ...string) bool {
		return slices.ContainsFunc(slices.Collect(maps.Keys(done)), func(key string) bool {
			call, id, _ := strings.Cut(strings.TrimPrefix(key, fmt.Sprint(place)), " ")
			return strings.HasPrefix(key, fmt.Sprint(place)) && id == m.Server.ID && (calls == nil || slices.Contains(calls, call))
		})
	}
	for what, tc := range map[string]struct{ did, may bool }{
		"something is sent to it":                 {did(subject, enginetest.OnHost), v.sent},
		"it is renamed":                           {did(subject, enginetest.InCloud, "rename"), v.renamed},
		"it is wiped":                             {slices.Contains(w.Erased, subject.Server.ID), v.wiped},
		"its Node or identity is deleted":         {did(subject, enginetest.InCluster, "delete", "revoke"), v.outOf},
		"the member is wiped":                     {slices.Contains(w.Erased, member.Server.ID), e.replicas == 1 && e.before == "f0.m2=2" && v.row == "member"},
		"the free server is wiped":                {slices.Contains(w.Erased, free.Server.ID), false},
		"the free server is claimed in its place": {did(free, enginetest.OnHost), v.claims},
		"exit code 0 hides it":                    {r.Converged(), !v.withheld},
	} {
		if tc.did && !tc.may {
			wrong = append(wrong, what)
		}
		if tc.did {
			counts[what]++
		}
	}
	wrong = append(wrong, w.Wrong()...)
	codes, remedies := saidOf(p, subject.Server.ID)
	if v.code != "" && !slices.Contains(codes, v.code) {
		wrong = append(wrong, fmt.Sprintf("it shows %q", codes))
	}
	for _, remedy := range remedies {
		if destroying(remedy) && !v.destroys {
			wrong = append(wrong, "advised: "+remedy)
		}
	}
	switch {
	case e.lost && v.code != "":
		return "lost", wrong
	case v.wiped:
		return "leaving", wrong
	case v.code == "surplus":
		return v.code, wrong
	}
	return v.row, wrong
}

// saidOf returns the codes and remedies that a plan shows of a server. A host of the same group may be the one that is surplus.
func saidOf(p *plan.Plan, id string) (codes, remedies []string) {
	add := func(t *plan.Trouble) {
		if t != nil {
			codes, remedies = append(codes, t.Code.String()), append(remedies, t.Remedy)
		}
	}
	for _, h := range p.Hosts {
		for _, w := range h.Warnings {
			if h.Server.ID == id || w.Code.String() == "surplus" {
				add(&w.Trouble)
			}
		}
		if h.Server.ID == id {
			add(h.Unknown)
			add(h.Refused)
		}
	}
	for _, a := range p.Actions {
		if a.ServerID == id {
			add(a.Refusal)
		}
	}
	for _, r := range p.Rejected {
		if r.Server.ID == id {
			add(&r.Trouble)
		}
	}
	for _, o := range p.Orphans {
		if o.Server.ID == id {
			add(&o.Trouble)
			add(o.Unknown)
		}
	}
	for _, l := range p.Lost {
		if l.ServerID == id {
			add(&l.Trouble)
		}
	}
	return codes, remedies
}
