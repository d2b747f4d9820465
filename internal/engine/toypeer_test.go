package engine_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/internal/engine"
	"github.com/macfleet/macfleet/internal/enginetest"
	"github.com/macfleet/macfleet/internal/secret"
	"github.com/macfleet/macfleet/plan"
	"github.com/macfleet/macfleet/plan/lists"
)

// badge is a further service with an entry for each host: a step with a probe and a script, and a client. Neither plan nor the engine knows it.
type badge struct {
	host   fleet.Host
	wanted bool
}

var _ plan.Peer = badge{}

func (badge) ID() plan.StepID { return "badge" }

func (badge) Service() plan.Service {
	return plan.Service{ID: "badges", Entry: "badge", Noun: "badge", Field: "badge", Place: "the door", Accept: "door", Idle: "unused", LeftOver: plan.CodeFirstSetup, Required: true}
}

func (b badge) Realm() (string, bool) { return "", b.wanted }

func (b badge) Wanted() string { return map[bool]string{true: "worn"}[b.wanted] }

func (badge) Probes() []plan.Probe {
	return []plan.Probe{{ID: "badge.id", Command: plan.Command{Name: "badge", Script: "get", As: plan.Login, Args: []string{"badge"}}}}
}

func (badge) Said(f plan.Facts) (said lists.Said, ok bool) {
	seen, _ := f.Get("badge.id").Get()
	id, _, _ := strings.Cut(seen.Stdout, " ")
	return lists.Said{ID: id}, id != "" && id != "-"
}

// set lets the host wear a badge, or none.
func (b badge) set(id string) plan.Change {
	return plan.Change{Reason: plan.Reason{Code: plan.CodeFirstSetup, Text: "badge " + id}, Fields: []plan.Field{{Name: "badge", After: id}}, Removes: id == "",
		Command: plan.Command{Name: "badge", Script: "set", As: plan.Login, Args: []string{"badge", id, "-", "-", "-", b.host.Name}}}
}

func (b badge) Diff(v plan.View) plan.Finding {
	said, worn := b.Said(v.Facts)
	list := v.Peer("badges")
	switch {
	case !b.wanted:
		return b.Leave(v)
	case !list.Read():
		return plan.Finding{Unread: []plan.Unread{{Probe: "the door's list", Why: "was not read"}}}
	case worn && slices.ContainsFunc(list.Entries(), func(e inventory.Entry) bool { return e.ID == said.ID }):
		return plan.Finding{Facts: "worn"}
	}
	join := b.set("of-" + v.Server.ID)
	join.Input = plan.Admission
	return plan.Finding{Changes: []plan.Change{join}}
}

func (b badge) Leave(v plan.View) (f plan.Finding) {
	said, worn := b.Said(v.Facts)
	if list := v.Peer("badges"); worn && list.Read() {
		f.Changes = []plan.Change{{Reason: plan.Reason{Code: plan.CodeFirstSetup, Text: "leaves"}, Fields: []plan.Field{{Name: "badge", Before: said.ID}}, Removes: true,
			Peer: &plan.PeerChange{Peer: "badges", Verb: inventory.DeleteEntry, Entry: inventory.Entry{ID: said.ID, Name: v.Host.Name, Online: true}}}, b.set("")}
	}
	return f
}

// door is the service.
type door struct {
	closed  error
	entries []inventory.Entry
	revoked []string
}

var _ engine.Service = (*door)(nil)

func (d *door) Observe(context.Context) map[string]plan.PeerSeen {
	if d.closed != nil {
		return map[string]plan.PeerSeen{"": {Trouble: &plan.Trouble{Code: plan.CodeUnreachable, Text: d.closed.Error()}}}
	}
	return map[string]plan.PeerSeen{"": {Listing: inventory.Listing{Plain: slices.Clone(d.entries)}}}
}

func (d *door) Entry(_ context.Context, _, id string) (inventory.Seen[inventory.Listing], error) {
	for _, e := range d.entries {
		if e.ID == id {
			return inventory.Present(inventory.Listing{Plain: []inventory.Entry{e}}), d.closed
		}
	}
	return inventory.Absent[inventory.Listing](), d.closed
}

func (d *door) MayJoin(context.Context, string) error { return d.closed }

// Admit makes an entry, as a door does that knows each key.
func (d *door) Admit(_ context.Context, _, host string) (engine.Admission, error) {
	d.entries = append(d.entries, inventory.Entry{ID: "of-0000" + host[len(host)-1:] + "-0000", Name: host, Online: true})
	key, err := secret.New("key of " + host)
	return engine.Admission{ID: host, Secret: key}, err
}

func (d *door) Revoke(_ context.Context, id string) error {
	d.revoked = append(d.revoked, id)
	return nil
}

func (d *door) Change(_ context.Context, to plan.PeerChange) error {
	if to.Verb != inventory.DeleteEntry {
		return errors.New("no such verb")
	}
	d.entries = slices.DeleteFunc(d.entries, func(e inventory.Entry) bool { return e.ID == to.Entry.ID })
	return nil
}

// TestToyPeer: a service that nothing else knows has the whole life of an entry: no server is claimed while it is away, a host joins with a
// credential that a failure revokes, its entry ends with it, and that of a host that is gone is deleted.
func TestToyPeer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, d, wanted := &nodesInMemory{World: enginetest.New(2, 1, oneByOne)}, &door{closed: errors.New("the door is closed")}, true
		w.Things = func(fleet.Host) []enginetest.Thing {
			return []enginetest.Thing{{Key: "sudo", Value: "yes", Input: plan.LoginPassword, Grants: true}}
		}
		w.More = func(h fleet.Host) []plan.Step { return []plan.Step{badge{h, wanted}} }
		w.Config.Fleets[0].Groups[0].Spec = fleet.Spec{}.WithBuiltIn().WithDefaults()
		runs := func() *engine.Engine {
			w.asToyRun(1)
			w.engine.Peers = map[inventory.ServiceName]engine.Service{"badges": d}
			return w.engine
		}
		names := func() (out []string) {
			for _, e := range d.entries {
				out = append(out, e.Name)
			}
			return out
		}
		p := planned(t, runs())
		if len(p.Services) != 1 || p.Services[0].About() != "the door" || len(p.Runnable()) > 0 {
			t.Errorf("closed: %+v, %d hosts to change", p.Services, len(p.Runnable()))
		}
		d.closed = nil
		w.OnCall = func(c enginetest.Call) (f enginetest.Fault) {
			if c.What == "RunChange" && len(d.entries) > 0 && len(d.revoked) == 0 {
				f.Err = errors.New("the line broke")
			}
			return f
		}
		if r := apply(t, runs()); len(r.Failures) == 0 || len(d.revoked) != 1 || !strings.HasPrefix(d.revoked[0], "acme-production-f0-m2-") {
			t.Errorf("failures %v, revoked %q", r.Failures, d.revoked)
		}
		w.OnCall, d.entries = nil, nil
		converges(t, runs())
		if got := names(); len(got) != 1 || planned(t, runs()).Hosts[0].Peer("badges").Entry.Name != got[0] {
			t.Errorf("entries %q", got)
		}
		const gone = "acme-production-f0-m2-fffff"
		d.entries = append(d.entries, inventory.Entry{ID: "7", Name: gone})
		e := runs()
		if err := e.Pins.Update(func(all []plan.Pin) []plan.Pin {
			return append(all, plan.Pin{ServerID: "fffff", Name: gone, Key: all[0].Key, Stage: plan.Released})
		}); err != nil {
			t.Fatal(err)
		}
		converges(t, e)
		if got := names(); len(got) != 1 || got[0] == gone {
			t.Errorf("entries %q", got)
		}
		wanted = false
		converges(t, runs())
		if got := names(); len(got) != 0 {
			t.Errorf("not wanted any more: %q", got)
		}
		wanted = true
		converges(t, runs())
		w.Config.Fleets[0].Groups[0].Replicas = 0
		converges(t, runs())
		if got := names(); len(got) != 0 || len(w.Wrong()) > 0 {
			t.Errorf("released: %q, wrong %q", got, w.Wrong())
		}
	})
}
