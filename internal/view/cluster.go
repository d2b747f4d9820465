package view

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/internal/engine"
	"github.com/macfleet/macfleet/plan"
)

// clusterName stands in lines where a host's name would.
const clusterName = "cluster"

// subject names what an action or an event is about: its host, or the cluster.
func subject(host string) string { return cmp.Or(host, clusterName) }

// cluster shows what is no host's: what the cluster itself lacks, and what of it
// could not be read. rows shows one action.
func (t *Text) cluster(p *plan.Plan, rows func(plan.Action) []row) {
	var body []row
	unprepared := unpreparedOf(p)
	for _, a := range p.Actions {
		if a.OfCluster() && !unpreparedAction(a) {
			body = append(body, rows(a)...)
		}
	}
	body = append(body, unprepared...)
	for _, u := range p.Unread {
		body = append(body, row{sign: signUnknown, text: fmt.Sprintf("not compared: %s: %s", u.Probe, u.Why)})
	}
	if len(body) == 0 {
		return
	}
	t.section("Cluster")
	for _, r := range body {
		t.line(2*r.depth, r.sign, r.text)
	}
}

func unpreparedAction(a plan.Action) bool {
	return a.Refusal != nil && a.Refusal.Code == plan.CodeClusterNotPrepared
}

// unpreparedOf shows several objects that only an administrator makes as one trouble:
// one command makes them all.
func unpreparedOf(p *plan.Plan) []row {
	var names []string
	var first *plan.Trouble
	for _, a := range p.Actions {
		if a.OfCluster() && unpreparedAction(a) {
			names = append(names, a.Object.String()+" ("+a.Reason.Code.String()+")")
			first = a.Refusal
		}
	}
	switch len(names) {
	case 0:
		return nil
	case 1:
		return trouble(signRefused, *first)
	}
	return trouble(signRefused, plan.Trouble{Code: plan.CodeClusterNotPrepared, Remedy: first.Remedy,
		Text: "the cluster lacks what hosts need to join it, or has it otherwise: " + strings.Join(names, ", ")})
}

// toldAbove shortens what stands at each host of a cluster that is not prepared: it is
// one trouble, and it was told of the cluster.
func toldAbove(body []row) []row {
	at := slices.IndexFunc(body, func(r row) bool { return strings.HasPrefix(r.text, plan.CodeClusterNotPrepared.String()+": ") })
	if at < 0 {
		return body
	}
	out := append(slices.Clone(body[:at]), row{sign: signRefused, depth: body[at].depth, text: plan.CodeClusterNotPrepared.String() + ": see the cluster, above"})
	return append(out, body[min(at+2, len(body)):]...) // without what is to be done, which was said there
}

// clusterSubject names what an action of the cluster is about.
func clusterSubject(a plan.Action) string {
	if a.Object == nil {
		return label(a) + " of " + a.Host
	}
	return a.Object.String()
}

func objectRows(a plan.Action) []row {
	return append([]row{{sign: string(a.Kind.Sign()), text: clusterSubject(a) + reason(a)}}, refusal(plan.Host{}, a)...)
}

// deliveries say what of an action travels to the host: what macfleet sends and
// what the host fetches. Of how much is free there, hosts that are shown as one
// have the least in common.
func deliveries(a plan.Action) []row {
	var out []row
	for _, c := range a.Changes {
		d := c.Delivery
		if d == nil {
			continue
		}
		way := "sends "
		if d.Artifact.Fetch == fleet.FetchHost {
			way = "host downloads "
		}
		r := row{depth: 2, text: way + size(d.Artifact)}
		if free, ok := d.Free.Get(); ok {
			r.free = max(free, 1)
		}
		out = append(out, r)
	}
	return out
}

// size is how big an artifact is; one whose size nobody wrote has a version alone.
func size(a fleet.Artifact) string {
	if a.Size == 0 {
		return strings.TrimSpace(a.Name + " " + a.Version)
	}
	return bytes(a.Size)
}

// bytes writes a number of bytes as disks are sold.
func bytes(n int64) string {
	of, unit := unitOf(n)
	switch {
	case unit == "":
		return fmt.Sprintf("%d bytes", n)
	case n >= 10*of:
		return fmt.Sprintf("%d %s", n/of, unit)
	}
	return strings.TrimSuffix(fmt.Sprintf("%.1f", float64(n)/float64(of)), ".0") + " " + unit
}

// unitOf returns the largest unit of which a number of bytes has one; below a thousand
// there is none.
func unitOf(n int64) (of int64, unit string) {
	switch {
	case n >= 1e9:
		return 1e9, "GB"
	case n >= 1e6:
		return 1e6, "MB"
	case n >= 1e3:
		return 1e3, "kB"
	}
	return 1, ""
}

// cost says what a plan disturbs and what it moves, or "".
func cost(p *plan.Plan) string {
	worst := make(map[string]plan.Disruption) // by server id: a host is disturbed once
	var sent, fetched int64
	for _, actions := range p.Runnable() {
		for _, a := range actions {
			worst[a.ServerID] = max(worst[a.ServerID], a.Disruption)
			for _, c := range a.Changes {
				switch d := c.Delivery; {
				case d == nil:
				case d.Artifact.Fetch == fleet.FetchHost:
					fetched += d.Artifact.Size
				default:
					sent += d.Artifact.Size
				}
			}
		}
	}
	of := make(map[plan.Disruption]int)
	for _, d := range worst {
		of[d]++
	}
	var parts []string
	for d := plan.Restart; d <= plan.Wipe; d++ {
		parts = append(parts, given(of[d] > 0, "%s", count(of[d], d.String())))
	}
	parts = append(parts, given(sent > 0, "%s to send", bytes(sent)), given(fetched > 0, "%s that hosts download", bytes(fetched)))
	text := listed(", ", parts...)
	return given(text != "", "Cost: at most %s.", text)
}

// nodes sums up how the Nodes of a run's hosts are at its end, and names those that are
// not Ready. A host whose kubelet could not be changed counts among them, whatever its
// Node says.
func (t *Text) nodes(r engine.Result) {
	failed := make(map[string]plan.StepID) // by server id
	for _, f := range r.Failures {
		if f.OfNode {
			failed[f.Action.ServerID] = f.Action.Step
		}
	}
	joining, failing := 0, 0
	var late []engine.NotReady
	for _, h := range r.After.Hosts {
		if !h.Member || !h.Spec.Spec.JoinsCluster() {
			continue
		}
		joining++
		failing += h.PodsFailing()
		state, why, _ := h.Ready()
		if step := failed[h.Server.ID]; state == inventory.Ready && step != "" {
			state, why = inventory.ReadyUnknown, "its step "+string(step)+" failed"
		}
		if state != inventory.Ready {
			late = append(late, engine.NotReady{Host: h, Why: why})
		}
	}
	if joining == 0 {
		return
	}
	end := "."
	if len(late) > 0 {
		end = "; not Ready:"
	}
	t.sayf("%d of %s Ready%s%s", joining-len(late), count(joining, "Node"), given(failing > 0, ", %s failing", count(failing, "Pod")), end)
	t.late(late)
}

// Prepared is an object that a cluster needs before its first plan, and what for.
type Prepared struct {
	inventory.Object
	For string
}

// Preparation shows what a cluster lacks, what for, and how much is right. Objects
// for the same thing are one line.
func (t *Text) Preparation(all []Prepared) {
	needed := slices.DeleteFunc(slices.Clone(all), func(p Prepared) bool { return p.State == inventory.ObjectKept })
	kept := len(all) - len(needed)
	if len(needed) == 0 {
		t.sayf("The cluster is prepared: %s as wanted.", count(kept, "object"))
		return
	}
	t.Say("The cluster needs, before macfleet can work with it:")
	signs := map[inventory.ObjectState]string{inventory.ObjectDiffers: "~", inventory.ObjectSurplus: "-"}
	for _, same := range grouped(needed, func(p Prepared) [2]string { return [2]string{string(p.State), p.For} }) {
		t.line(2, cmp.Or(signs[same[0].State], "+"), joined(same, objectName)+": "+same[0].For)
	}
	if kept > 0 {
		t.sayf("%s as wanted.", count(kept, "object"))
	}
}

// objectName is an object's kind and place, and what is not as wanted.
func objectName(o Prepared) string {
	return o.String() + given(o.Why != "", " (%s)", o.Why)
}
