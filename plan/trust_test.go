package plan_test

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/plan"
)

// key makes a host key; two of one number are the same.
func key(n int) string {
	sum := sha256.Sum256(fmt.Append(nil, n))
	return "ssh-ed25519 " + base64.StdEncoding.EncodeToString(sum[:])
}

func note(n int) string { return plan.KeyNote(key(n), plan.Fingerprint(key(n))) }

// shows lets a host show a key, and says whether that was compared with a pin.
func (w *world) shows(n, k int) {
	pinned := false
	for _, p := range w.snap.Pins {
		pinned = pinned || p.ServerID == serverID(n)
	}
	w.change(n, func(h *plan.HostSeen) { h.Key, h.Fingerprint, h.Pinned = key(k), plan.Fingerprint(key(k)), pinned })
}

// pinKey pins a key of a server under a name.
func (w *world) pinKey(n int, name string, k int) {
	w.snap.Pins = append(w.snap.Pins, plan.Pin{ServerID: serverID(n), Name: name, Key: key(k), Since: noon})
}

// noted adds a server's Node with its key noted there.
func (w *world) noted(n int, name, note string) {
	w.node(n, name, inventory.Ready)
	nodes, _ := w.snap.Nodes.Get()
	nodes[len(nodes)-1].HostKey = note
}

// TestTrust says of a host that shows its key 1 what follows from the witnesses that exist.
func TestTrust(t *testing.T) {
	t.Parallel()
	claimed := func(w *world) string { return w.member("macos", "m2", 1).Name }
	adopted := func(w *world) string {
		w.outside(1, legacy)
		w.adopt(1, legacy)
		return legacy
	}
	remembers := func(k int) func(*world, string) {
		return func(w *world, name string) {
			w.snap.Remembered = []plan.Pin{{ServerID: serverID(1), Name: name, Key: key(k)}}
		}
	}
	for name, tc := range map[string]struct {
		is   func(*world) string
		know func(w *world, name string)
		want string // code of what keeps everyone off it, "first" contact, "restored", or "" where it is pinned
	}{
		"pinned":                       {claimed, func(w *world, name string) { w.pinKey(1, name, 1) }, ""},
		"a claimed name":               {claimed, func(*world, string) {}, "host-key-unknown"},
		"adopted, no one knows it":     {adopted, func(*world, string) {}, "first"},
		"adopted, pinned":              {adopted, func(w *world, name string) { w.pinKey(1, name, 1) }, ""},
		"adopted, with a Node":         {adopted, func(w *world, name string) { w.node(1, name, inventory.Ready) }, "host-key-unknown"},
		"adopted, a Node's name":       {adopted, func(w *world, name string) { w.node(9, name, inventory.Ready) }, "host-key-unknown"},
		"adopted, with an identity":    {adopted, func(w *world, name string) { w.identity(name) }, "host-key-unknown"},
		"adopted, in a record":         {adopted, func(w *world, _ string) { w.snap.Met = []string{serverID(1)} }, "host-key-unknown"},
		"adopted, a re-created server": {adopted, func(w *world, name string) { w.pinKey(7, name, 1) }, "host-key-unknown"},
		"adopted, with our marker": {adopted, func(w *world, name string) {
			m := w.marker("macos", "m2", 1)
			m.Name = name
			w.marked(1, m)
		}, "host-key-unknown"},
		"the Node notes it":         {claimed, func(w *world, name string) { w.noted(1, name, note(1)) }, "restored"},
		"the Node notes another":    {claimed, func(w *world, name string) { w.noted(1, name, note(2)) }, "wrong-host-key"},
		"the Node notes rubbish":    {claimed, func(w *world, name string) { w.noted(1, name, "yes") }, "wrong-host-key"},
		"remembered":                {claimed, remembers(1), "restored"},
		"another one is remembered": {claimed, remembers(2), "wrong-host-key"},
		"pin and Node disagree": {claimed, func(w *world, name string) {
			w.pinKey(1, name, 1)
			w.noted(1, name, note(2))
		}, "wrong-host-key"},
		"two pins disagree": {claimed, func(w *world, name string) {
			w.pinKey(1, "acme-old", 2)
			w.snap.Pins[0].Since = noon.Add(-time.Hour)
			w.pinKey(1, name, 1)
		}, "wrong-host-key"},
		"two pins of several types": {claimed, func(w *world, name string) {
			w.snap.Pins = []plan.Pin{{ServerID: serverID(1), Name: name, Key: "ssh-rsa AAAA"}}
			w.pinKey(1, name, 1)
		}, ""},
		"pinned, and another is remembered": {claimed, func(w *world, name string) { w.pinKey(1, name, 1); remembers(2)(w, name) }, "wrong-host-key"},
		"pinned after a reinstallation": {claimed, func(w *world, name string) {
			w.pinKey(1, name, 1)
			w.snap.Pins[0] = w.snap.Pins[0].Replaces(plan.Pin{Key: key(2)})
			remembers(2)(w, name)
		}, ""},
		"any agent could note it": {claimed, func(w *world, name string) {
			w.noted(1, name, note(1))
			w.observe(func(c *inventory.Cluster) { c.Objects = inventory.Present([]inventory.Object{}) })
		}, "host-key-unknown"},
		"any agent could note another": {claimed, func(w *world, name string) {
			w.pinKey(1, name, 1)
			w.noted(1, name, note(2))
			w.observe(func(c *inventory.Cluster) { c.Objects = inventory.Present([]inventory.Object{}) })
		}, "wrong-host-key"},
		"the configuration gives it":       {claimed, func(w *world, name string) { w.cfg.SSH.HostKeys = map[string]string{name: plan.Fingerprint(key(1))} }, "first"},
		"the configuration gives it by id": {claimed, func(w *world, _ string) { w.cfg.SSH.HostKeys = map[string]string{serverID(1): note(1)} }, "first"},
		"the configuration gives another": {claimed, func(w *world, name string) {
			w.pinKey(1, name, 1)
			w.cfg.SSH.HostKeys = map[string]string{name: plan.Fingerprint(key(2))}
		}, "wrong-host-key"},
		"the pins could not be read": {claimed, func(w *world, name string) {
			w.noted(1, name, note(1))
			w.snap.PinsUnread = "no answer"
		}, "unrestored"},
		"adopted, the pins could not be read": {adopted, func(w *world, _ string) { w.snap.PinsUnread = "forbidden" }, "host-key-unknown"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(1, 0, 0)
			w.bindsAgents()
			tc.know(w, tc.is(w))
			w.shows(1, 1)
			p := w.plan(t)
			h := oneHost(t, p)
			got := ""
			switch {
			case h.Unknown != nil:
				explained(t, h.Unknown)
				got = h.Unknown.Code.String()
				if len(p.Runnable()) != 0 {
					t.Errorf("it would still get %v", lines(p))
				}
			case len(p.Actions) > 0 && p.Actions[0].Kind == plan.PinHost:
				got = "restored"
				if !p.Actions[0].Origin.Drift || p.Summarise().Drift == 0 {
					t.Errorf("no drift: %+v", p.Actions[0])
				}
			case !h.Seen.Pinned && h.Trust().Lost():
				got = "unrestored"
			case !h.Seen.Pinned:
				got = "first"
			}
			if got != tc.want {
				t.Errorf("got %q, want %q: %+v", got, tc.want, h.Unknown)
			}
			// The connection knows as much beforehand, but for what the host itself says.
			trust := plan.Trusts(w.cfg, plan.Snapshot{Servers: w.snap.Servers, Nodes: w.snap.Nodes, Cluster: w.snap.Cluster,
				Pins: w.snap.Pins, Remembered: w.snap.Remembered, Met: w.snap.Met,
				PinsUnread: w.snap.PinsUnread})[serverID(1)]
			if early := trust.Unknown(); early != (tc.want == "host-key-unknown") && name != "adopted, with our marker" {
				t.Errorf("before the login it is unknown: %t", early)
			}
			expect(t, "first contact", name == "adopted, no one knows it", len(plan.FirstContacts(w.cfg, w.snap)) > 0)
		})
	}
}

// TestTrustOfAPoolServer: what is known of its key counts like that of a member, until its release was finished. With its pin lost, an
// impostor under a name of the pool was sent the login password, although its Node named the true key.
func TestTrustOfAPoolServer(t *testing.T) {
	t.Parallel()
	const old = "acme-old"
	for name, tc := range map[string]struct {
		know func(*world)
		want string // code of what keeps everyone off it; empty: it is met for the first time
	}{
		"no one knows it": {func(*world) {}, ""},
		"a copy of a pin": {func(w *world) { w.snap.Remembered = []plan.Pin{{ServerID: serverID(1), Name: old, Key: key(2)}} }, "wrong-host-key"},
		"a record":        {func(w *world) { w.snap.Met = []string{serverID(1)} }, "host-key-unknown"},
		"the pins unread": {func(w *world) { w.snap.PinsUnread = "forbidden" }, ""},
		"a copy, released": {func(w *world) {
			w.snap.Remembered = []plan.Pin{{ServerID: serverID(1), Name: old, Key: key(2)}}
			w.released(1)
		}, ""},
		"a record, released": {func(w *world) { w.snap.Met = []string{serverID(1)}; w.released(1) }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(1, 0, 0)
			w.free(1)
			tc.know(w)
			w.shows(1, 1)
			p, got := w.plan(t), ""
			if h := oneHost(t, p); h.Unknown != nil {
				got = h.Unknown.Code.String()
			}
			if got != tc.want || (len(p.Runnable()) > 0) != (tc.want == "") {
				t.Errorf("got %q, want %q; it would get %v", got, tc.want, p.Runnable())
			}
			trust := plan.Trusts(w.cfg, plan.Snapshot{Servers: w.snap.Servers, Nodes: w.snap.Nodes, Pins: w.snap.Pins, Released: w.snap.Released,
				Remembered: w.snap.Remembered, Met: w.snap.Met, PinsUnread: w.snap.PinsUnread})[serverID(1)]
			if early := trust.Unknown() || trust.Disagrees(plan.Fingerprint(key(1))) != ""; early != (tc.want != "") {
				t.Errorf("before the login it is kept off: %t", early)
			}
		})
	}
}

// bindsAgents adds what limits each kubelet to its own objects.
func (w *world) bindsAgents() {
	w.observe(func(c *inventory.Cluster) {
		c.Objects = inventory.Present([]inventory.Object{{Kind: "ValidatingAdmissionPolicy", Name: "a", State: inventory.ObjectKept},
			{Kind: "ValidatingAdmissionPolicyBinding", Name: "a", State: inventory.ObjectKept}})
	})
}

// TestPinEnds: a copy on this machine counts until a pin says what came after it.
func TestPinEnds(t *testing.T) {
	t.Parallel()
	stored := plan.Pin{ServerID: "a", Key: key(3)}.Replaces(plan.Pin{Key: key(2)}.Replaces(plan.Pin{Key: key(1)}))
	for k, ends := range []bool{false, true, true, true, false} {
		if got := stored.Ends(plan.Pin{ServerID: "a", Key: key(k)}); got != ends {
			t.Errorf("key %d: %t", k, got)
		}
	}
	if stored.Ends(plan.Pin{ServerID: "b", Key: key(3)}) {
		t.Error("it ends the copy of another server")
	}
	stored.Stage = plan.Released
	if !stored.Ends(plan.Pin{ServerID: "a", Key: key(0)}) {
		t.Error("its release does not end a copy")
	}
	for k := range 20 { // it does not grow without end
		fresh := stored
		fresh.Key = key(k + 10)
		stored = fresh.Replaces(stored)
	}
	if n := len(strings.Fields(stored.Earlier)); n != 8 {
		t.Errorf("%d earlier keys", n)
	}
}

// TestAccept: a key that a person accepts ends all that was known, however much that is, and nothing of another server.
func TestAccept(t *testing.T) {
	t.Parallel()
	here := func(k int) plan.Pin { return plan.Pin{ServerID: "a", Name: "mac-1", Key: key(k), Since: noon} }
	old := here(0)
	for k := range 9 {
		next := here(k + 1)
		old = next.Replaces(old)
	}
	was, other := plan.Pin{ServerID: "b", Name: "mac-1", Key: key(50), Stage: plan.Released}, plan.Pin{ServerID: "c", Name: "mac-1", Key: key(51)}
	h := plan.KeyHolder{Name: "mac-1", Server: inventory.Server{ID: "a"}, Trust: plan.Trust{Vouchers: []plan.Voucher{{By: "a copy", Key: note(40)}}}}
	got := h.Accept([]plan.Pin{was, old, other}, plan.Pin{Key: key(30)})
	if len(got) != 2 || got[0] != was || got[1].ServerID != "a" || got[1].Name != "mac-1" || got[1].Key != key(30) {
		t.Fatalf("pins %+v", got)
	}
	for _, k := range []int{9, 8, 40} {
		if !got[1].Ends(here(k)) {
			t.Errorf("a copy of key %d still counts", k)
		}
	}
	h = plan.KeyHolder{Name: "mac-1", Gone: true, Trust: plan.Trust{Pin: &old}}
	again := old
	again.Stage, again.Since, again.Accepted = plan.Released, noon.Add(time.Hour), "sam 2026-11-29"
	for range 2 { // the second time changes nothing
		if got = h.Accept([]plan.Pin{was, old, other}, plan.Pin{Since: again.Since, Accepted: again.Accepted}); len(got) != 2 || got[0] != was || got[1] != again {
			t.Fatalf("it is gone: %+v", got)
		}
	}
}

// released notes that a server's release was finished.
func (w *world) released(n int) {
	w.snap.Released = append(w.snap.Released, plan.Pin{ServerID: serverID(n), Name: "acme-was", Key: key(9), Stage: plan.Released})
}

// TestLostPlaceOfPins is drift where the cluster must have had one.
func TestLostPlaceOfPins(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		know func(w *world, name string)
		want int
	}{
		"never made":     {func(*world, string) {}, 0},
		"an identity":    {func(w *world, name string) { w.identity(name) }, 1},
		"a noted key":    {func(w *world, name string) { w.noted(1, name, note(1)) }, 1},
		"remembered":     {func(w *world, _ string) { w.snap.Remembered = []plan.Pin{{ServerID: serverID(8), Key: key(8)}} }, 1},
		"a limited plan": {func(w *world, name string) { w.identity(name); w.sel.On = only("group=m2") }, 0},
	} {
		w := newWorld(1, 0, 0)
		host := w.member("macos", "m2", 1).Name
		w.pinKey(1, host, 1)
		w.shows(1, 1)
		w.snap.PinsLost = &inventory.Object{Kind: "ConfigMap", Namespace: "macfleet", Name: "macfleet-host-keys", State: inventory.ObjectMissing}
		tc.know(w, host)
		n := 0
		for _, a := range w.plan(t).Actions {
			if a.Kind == plan.KeepObject && a.Origin.Drift {
				n++
			}
		}
		if n != tc.want {
			t.Errorf("%s: %d actions, want %d", name, n, tc.want)
		}
	}
}

// TestConfiguredKeyIsCorrected: where the key in host_keys differs from the one that the host shows, removing the pin does not help.
func TestConfiguredKeyIsCorrected(t *testing.T) {
	t.Parallel()
	trust := plan.Trust{Vouchers: []plan.Voucher{{By: `host_keys["a"] of the configuration`, Key: "SHA256:one", Configured: true}}}
	if got := trust.WrongKeyRemedy("a", "SHA256:two"); !strings.Contains(got, `host_keys["a"]`) || strings.Contains(got, "forget-key") {
		t.Errorf("a wrong key in host_keys: %s", got)
	}
	if got := trust.WrongKeyRemedy("a", "SHA256:one"); !strings.Contains(got, "forget-key a") {
		t.Errorf("a wrong pin: %s", got)
	}
}
