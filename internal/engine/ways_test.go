package engine_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/internal/doctor"
	"github.com/macfleet/macfleet/internal/drift"
	"github.com/macfleet/macfleet/internal/engine"
	"github.com/macfleet/macfleet/internal/enginetest"
	"github.com/macfleet/macfleet/internal/view"
	"github.com/macfleet/macfleet/plan"
)

// releaseWay is a way in which a release fails at the provider, and how it ends.
type releaseWay struct {
	before   func(w *nodesInMemory)                        // before the run
	refused  inventory.Class                               // the class of the answer to the request to erase the server
	then     func(w *nodesInMemory, m *enginetest.Machine) // after that request
	replaces bool                                          // another server should join first
	killed   bool                                          // the process, right after the request
	lags     bool                                          // from the request on, lists lack the server
	stops    bool                                          // a person stops the run
	fails    string                                        // the code of the failure; empty: it has none
	shows    string                                        // the code that plan, hosts and doctor show
	noDrift  bool                                          // drift shows nothing, because nothing was started
	repairs  func(w *nodesInMemory, m *enginetest.Machine) // what the provider or a person does there
	command  string                                        // is printed, and reaches the end
	end      string                                        // in the pool, kept or gone
}

// releaseWays are the ways in which a release fails.
func releaseWays() map[string]releaseWay {
	status := func(text string) func(*nodesInMemory, *enginetest.Machine) {
		return func(w *nodesInMemory, m *enginetest.Machine) { w.Change(func() { m.Server.Status = text }) }
	}
	deletes := func(w *nodesInMemory, m *enginetest.Machine) {
		w.Change(func() { w.Deleted = append(w.Deleted, m.Server.ID) })
		w.StopKubelet(m.NodeName())
	}
	const started, apply, forget = "release-started", "macfleet apply", "macfleet hosts forget-key"
	ready := status("ready")
	return map[string]releaseWay{
		"status error": {then: status("error"), fails: "install-failed", shows: started, repairs: ready, command: apply, end: "pool"},
		"locked":       {then: status("locked"), fails: "not-reinstalled", shows: started, repairs: ready, command: apply, end: "pool"},
		"never ends":   {then: status("reinstalling"), fails: "not-reinstalled", shows: started, repairs: ready, command: apply, end: "pool"},
		"401":          {refused: inventory.Unauthenticated, shows: started, command: apply, end: "pool"},
		"403":          {refused: inventory.Denied, shows: started, command: apply, end: "pool"},
		"409":          {refused: inventory.Transient, shows: started, command: apply, end: "pool"},
		"killed":       {killed: true, shows: started, command: apply, end: "pool"},
		"cancelled":    {stops: true, shows: started, command: apply, end: "pool"},
		"list lags":    {killed: true, lags: true, shows: "server-vanished", command: apply, end: "pool"},
		"gone":         {then: deletes, fails: "not-reinstalled", shows: "server-vanished", command: forget, end: "gone"},
		"DevOS": {before: func(w *nodesInMemory) {
			w.everyMac(func(m *enginetest.Machine) { m.Server.OSFamily = inventory.DevOS })
		},
			shows: "not-reinstallable", noDrift: true, repairs: deletes, command: forget, end: "gone"},
		"out of stock": {replaces: true, before: func(w *nodesInMemory) {
			w.everyMac(func(m *enginetest.Machine) {
				m.Server.DeletionScheduled = strings.HasPrefix(m.Server.Name, "acme-pool-")
			})
		}, shows: "no-replacement", noDrift: true, command: "macfleet replace --cancel", end: "kept"},
	}
}

// TestReleaseFails: each command shows each way with a code, twice in a row, and a command that is printed ends it.
func TestReleaseFails(t *testing.T) {
	t.Parallel()
	for name, way := range releaseWays() {
		parallel(t, name, func(t *testing.T) { twoOfThree(t, way.ends) })
	}
}

// ends lets the release fail, looks twice, and ends it.
func (way releaseWay) ends(t *testing.T, w *nodesInMemory, names []string) {
	if way.before != nil {
		way.before(w)
	}
	stop, halt := context.WithCancel(t.Context())
	defer halt()
	if w.engine.Stop = stop; way.replaces {
		w.engine.Selection.Departs = &plan.Departure{Name: names[0], Replace: true}
	} else {
		w.Config.Fleets[0].Groups[0].Replicas = 1
	}
	p := planned(t, w.engine)
	i := slices.IndexFunc(p.Hosts, func(h plan.Host) bool { return h.Leaves || h.Stage == plan.Replaced })
	m, host := w.Member(p.Hosts[i].Server.ID), p.Hosts[i].Name
	lacks := false
	w.OnCall = func(c enginetest.Call) (f enginetest.Fault) {
		switch {
		case c.What == "list" && lacks:
			f.Before = func() { w.Change(func() { m.Unlisted = true }) }
		case c.What == "reinstall":
			f.After = func() {
				if lacks = way.lags; way.killed {
					w.Die(errDied)
					halt()
				} else if way.stops {
					time.AfterFunc(time.Minute, halt)
				}
				if way.then != nil {
					way.then(w, m)
				}
			}
			if way.refused != "" {
				f.Err = &inventory.ProviderError{Class: way.refused}
			}
		}
		return f
	}
	began := time.Now()
	r, err := applying(t, t.Context(), w.engine, p)
	w.Die(nil)
	if err != nil && !way.killed || r.Converged() || way.fails == "" != (len(r.Failures) == 0 || troubleOf(r.Failures[0].Err).Code == (plan.Code{})) ||
		len(r.Failures) > 0 && way.fails != "" && troubleOf(r.Failures[0].Err).Code.String() != way.fails {
		t.Errorf("%v, failures %+v", err, r.Failures)
	}
	if way.end == "gone" && time.Since(began) > time.Minute {
		t.Errorf("a server that is gone was waited for, %s", time.Since(began))
	}
	var advice string
	for look := range 2 {
		e := w.next("look", int64(2+look))
		said, remedies := shownBy(t, e, host, m.Server.ID)
		for command, codes := range said {
			if !slices.Contains(codes, way.shows) && !(command == "drift" && way.noDrift) {
				t.Errorf("%s shows %q, without %s", command, codes, way.shows)
			}
		}
		advice = fmt.Sprint(remedies, r.Failures)
	}
	w.OnCall = nil
	if way.repairs != nil {
		way.repairs(w, m)
		_, remedies := shownBy(t, w.next("look", 4), host, m.Server.ID)
		advice += fmt.Sprint(remedies)
	}
	if verb, flag, _ := strings.Cut(way.command, " --"); !strings.Contains(advice, verb) || !strings.Contains(advice, flag) {
		t.Errorf("%s is not printed: %s", way.command, advice)
	}
	way.performs(t, w, host)
	e := w.next("last", 9)
	if r := apply(t, e); !r.Converged() {
		t.Errorf("failures %+v, left %+v", r.Failures, r.After.Summarise())
	}
	pins, err := e.Pins.All()
	must(t, err)
	left, _ := plan.WithoutReleased(pins)
	known := slices.ContainsFunc(left, func(p plan.Pin) bool { return p.ServerID == m.Server.ID && p.Stage == plan.Stays })
	if pooled := strings.HasPrefix(m.Server.Name, "acme-pool-"); pooled != (way.end == "pool") || known != (way.end == "kept") || len(w.Lasting()) == 0 {
		t.Errorf("it ends as %s: %+v", m.Server.Name, pins)
	}
}

// performs runs the command that is printed. A last apply follows in any case.
func (way releaseWay) performs(t *testing.T, w *nodesInMemory, host string) {
	t.Helper()
	e := w.next("ends", 8)
	switch way.command {
	case "macfleet replace --cancel":
		if k, err := e.CancelDeparture(t.Context(), host); err != nil || k.Stage != plan.Replaced || k.Surplus > 0 {
			t.Errorf("cancelled %+v, %v", k, err)
		}
	case "macfleet hosts forget-key":
		snap, err := e.Lists(t.Context())
		must(t, err)
		holder, err := plan.HolderOf(w.Config, snap, host)
		must(t, err)
		must(t, e.Pins.Update(func(all []plan.Pin) []plan.Pin { return holder.Accept(all, plan.Pin{Since: time.Now()}) }))
		for _, l := range planned(t, e).Lost { // its Node knows it, too
			if strings.HasSuffix(l.Trouble.Remedy, "kubectl delete node "+host) {
				w.DeleteNode(host)
			}
		}
	}
}

// shownBy returns the codes that each command shows of a host, and what they advise.
func shownBy(t *testing.T, e *engine.Engine, host, id string) (said map[string][]string, remedies []string) {
	t.Helper()
	p := planned(t, e)
	codes, remedies := saidOf(p, id)
	said = map[string][]string{"plan": codes, "hosts": nil, "drift": nil, "doctor": nil}
	add := func(command string, codes ...string) { said[command] = append(said[command], codes...) }
	for _, a := range p.Actions {
		if a.ServerID == id {
			add("plan", a.Reason.Code.String())
		}
	}
	var table strings.Builder
	view.NewText(&table, 0, false).Hosts(p, view.HostsOptions{Now: time.Now()})
	add("hosts", strings.FieldsFunc(table.String(), func(r rune) bool { return strings.ContainsRune(" \n()[]:", r) })...)
	r, err := drift.Of(p, nil, time.Now())
	must(t, err)
	for _, i := range r.Items {
		add("drift", i.Code.String())
	}
	for _, u := range r.Unseen {
		add("drift", u.Code.String())
	}
	var c doctor.Checkup
	if c, _, err = examined(t, e, host); err != nil {
		add("doctor", troubleOf(err).Code.String())
	}
	for _, check := range c.Checks {
		add("doctor", check.Code.String(), check.Refused.String())
		remedies = append(remedies, check.Remedy)
	}
	return said, remedies
}
