package plan

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/plan/ledger"
)

// The codes that are raised here.
var (
	CodeHostKeyUnknown = NewCode("host-key-unknown", Critical, "the host is a known member, but its key is not pinned",
		"compare the key over VNC: ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub; if it matches: macfleet hosts forget-key NAME")
	CodeWrongHostKey = NewCode("wrong-host-key", Critical, "the host's key differs from the pinned one",
		"if it was reinstalled on purpose: macfleet hosts forget-key NAME; otherwise find out which machine answers")
	CodePinMissing = NewCode("pin-missing", Warning, "the pin of a member's host key is missing, but another source knows the key")
)

// Trust is what is known of a host's key before connecting to the host.
type Trust struct {
	Pin      *Pin      // nil: none is stored
	Vouchers []Voucher // other sources of the key; all of them must agree with it
	// Known says how the host is known as a member; empty: this is the first contact. macfleet does not log
	// in to a known member whose key is unknown.
	Known string
}

// Voucher is a source of a host's key other than the pins.
type Voucher struct {
	By  string `json:"by"`  // for messages: the source
	Key string `json:"key"` // "ssh-ed25519 SHA256:…", or only the fingerprint
	// Lost says that a pin of the key must have been stored and is gone. A key that a person wrote into the
	// configuration does not show that.
	Lost bool `json:"-"`
	// Weak says that anyone on a host may have written it: it can contradict, and does not show that a key is right.
	Weak bool `json:"-"`
	// Configured says that a person wrote it into the configuration.
	Configured bool `json:"-"`
}

// Fingerprint returns the fingerprint that the source gives.
func (v Voucher) Fingerprint() string { return v.Key[strings.LastIndexByte(v.Key, ' ')+1:] }

// KeyType returns the type of the key, for example ssh-ed25519; empty: unknown.
func (v Voucher) KeyType() string {
	kind, _, typed := strings.Cut(v.Key, " ")
	if !typed {
		return ""
	}
	return kind
}

// WrongKeyRemedy returns what to do about a host whose key differs from what is known. Removing a pin does not help where the
// configuration itself names another key.
func (t Trust) WrongKeyRemedy(name, fingerprint string) string {
	for _, v := range t.Vouchers {
		if v.Configured && v.Fingerprint() != fingerprint {
			return "compare the fingerprint on the host's screen; if the host shows its own key, correct " + v.By + "; otherwise another machine answers at this address: do not continue"
		}
	}
	return WrongKeyRemedy(name)
}

// Disagrees returns why a key with this fingerprint is not the host's, or "".
func (t Trust) Disagrees(fingerprint string) string {
	for _, v := range t.Vouchers {
		if v.Fingerprint() != fingerprint {
			return fmt.Sprintf("the host shows the key %s, but %s has %s", fingerprint, v.By, v.Fingerprint())
		}
	}
	return ""
}

// Lost reports whether a pin must have been stored once, and is gone.
func (t Trust) Lost() bool {
	return t.Pin == nil && slices.ContainsFunc(t.Vouchers, func(v Voucher) bool { return v.Lost })
}

// Unknown reports whether the host is a known member whose key is unknown.
func (t Trust) Unknown() bool { return t.Known != "" && t.Pin == nil && !t.vouched() }

// vouched reports whether a source other than the pins shows that a key is right.
func (t Trust) vouched() bool {
	return slices.ContainsFunc(t.Vouchers, func(v Voucher) bool { return !v.Weak })
}

// Fingerprint returns the SHA256 fingerprint of a key "type base64", as ssh-keygen -l prints it, or "" if the
// text is not a key.
func Fingerprint(key string) string {
	_, blob, _ := strings.Cut(key, " ")
	blob, _, _ = strings.Cut(blob, " ")
	raw, err := base64.StdEncoding.DecodeString(blob)
	if err != nil || len(raw) == 0 {
		return ""
	}
	sum := sha256.Sum256(raw)
	return "SHA256:" + base64.RawStdEncoding.EncodeToString(sum[:])
}

func keyType(key string) string {
	kind, _, _ := strings.Cut(key, " ")
	return kind
}

// KeyNote identifies a key where the fingerprint is enough: its type and fingerprint.
func KeyNote(key, fingerprint string) string {
	return strings.TrimSpace(keyType(key) + " " + fingerprint)
}

// HostKeyUnknown is the trouble of a known member whose key is unknown.
func HostKeyUnknown(name, known, offered string) *Trouble {
	return CodeHostKeyUnknown.Trouble(fmt.Sprintf("it is a known member (by %s), but its key is not pinned; it offers %s", known, offered),
		CompareKey(offered)+"; if it matches: macfleet hosts forget-key "+name)
}

// CompareKey says how a person compares a key, in the form of KeyNote, with the host's own.
func CompareKey(offered string) string {
	file := "ed25519"
	switch kind := keyType(offered); {
	case strings.HasPrefix(kind, "ecdsa"):
		file = "ecdsa"
	case strings.HasPrefix(kind, "ssh-rsa"):
		file = "rsa"
	}
	return "compare the key over VNC: ssh-keygen -lf /etc/ssh/ssh_host_" + file + "_key.pub"
}

// trusts finds what is known of the keys of servers.
type trusts struct {
	*census
	pins   map[string]*Pin      // by server id: the latest
	named  map[string]string    // by the name of a pin, the server id
	copies map[string][]Voucher // by server id: this machine's copies
	met    map[string]bool      // server ids
	bound  bool                 // the cluster limits each kubelet to its own objects, so that only macfleet notes keys on Nodes
	// released are the ids of servers whose release was finished: what is older does not count.
	released map[string]bool
	// contradicting are pins that contradict another pin of the same server.
	contradicting map[string][]Voucher
}

func (c *census) trusts() *trusts {
	t := &trusts{census: c, pins: make(map[string]*Pin, len(c.snap.Pins)), named: make(map[string]string, len(c.snap.Pins)),
		copies: make(map[string][]Voucher), met: make(map[string]bool), contradicting: make(map[string][]Voucher),
		released: make(map[string]bool, len(c.snap.Released))}
	objects, _ := c.cluster.seen.Objects.Get()
	t.bound = inventory.BindsAgents(objects)
	for _, p := range c.snap.Released {
		t.released[p.ServerID] = true
	}
	for i := range c.pins {
		p := &c.pins[i]
		// Of two keys of one type, one is wrong. A host may have keys of several types.
		if have := t.pins[p.ServerID]; have != nil && have.Key != p.Key && keyType(have.Key) == keyType(p.Key) {
			older := Voucher{By: "an older pin, as " + have.Name, Key: KeyNote(have.Key, Fingerprint(have.Key))}
			t.contradicting[p.ServerID] = append(t.contradicting[p.ServerID], older)
		}
		t.pins[p.ServerID], t.named[p.Name] = p, p.ServerID
	}
	for _, p := range c.snap.Remembered {
		if have := t.pins[p.ServerID]; p.Stage == Released || have != nil && have.Ends(p) {
			continue
		}
		t.copies[p.ServerID] = append(t.copies[p.ServerID], Voucher{By: "the copy that this machine has from the cluster", Key: KeyNote(p.Key, Fingerprint(p.Key)), Lost: true})
	}
	for _, id := range c.snap.Met {
		t.met[id] = true
	}
	return t
}

// of returns what is known of a server's key. The role does not matter: a host with a name of the pool was once sent the
// login password although its Node named another key.
func (t *trusts) of(p *placed) Trust {
	out := Trust{Pin: t.pins[p.server.ID], Vouchers: slices.Clone(t.contradicting[p.server.ID])}
	for _, name := range []string{p.name, p.server.Name, p.server.ID} {
		if key, ok := t.cfg.SSH.HostKeys[name]; ok {
			out.Vouchers = append(out.Vouchers, Voucher{By: fmt.Sprintf("host_keys[%q] of the configuration", name), Key: key, Configured: true})
			break
		}
	}
	node, isNode := t.nodeOf(p)
	if isNode && node.HostKey != "" {
		out.Vouchers = append(out.Vouchers, Voucher{By: "its Node's annotation", Key: node.HostKey, Lost: t.bound, Weak: !t.bound})
	}
	if p.role == pool && t.released[p.server.ID] {
		return out
	}
	out.Vouchers = append(out.Vouchers, t.copies[p.server.ID]...)
	out.Known = t.known(p)
	return out
}

// nodeOf returns the Node of a server, by its provider id or only by the name.
func (t *trusts) nodeOf(p *placed) (inventory.Node, bool) {
	if n, ok := p.node.Get(); ok {
		return n, true
	}
	n, ok := t.cluster.nodes[p.name]
	return n, ok
}

// Trusts returns what is known of the key of every server of a snapshot, by server id. It is
// pure.
func Trusts(cfg *fleet.Config, snap Snapshot) map[string]Trust {
	t := takeCensus(cfg, snap).trusts()
	out := make(map[string]Trust, len(t.servers))
	for i := range t.servers {
		out[t.servers[i].server.ID] = t.of(&t.servers[i])
	}
	return out
}

// FirstContacts returns the members that no source knows: only the record of a run shows whether this is the first
// contact. It is pure.
func FirstContacts(cfg *fleet.Config, snap Snapshot) []string {
	t := takeCensus(cfg, snap).trusts()
	var out []string
	for i := range t.servers {
		p := &t.servers[i]
		if trust := t.of(p); p.role == member && trust.Pin == nil && trust.Known == "" {
			out = append(out, p.server.ID)
		}
	}
	return out
}

// known returns the source by which a server is a known member, or "".
func (t *trusts) known(p *placed) string {
	if _, listed := t.adopted[p.server.ID]; !listed {
		if _, own := t.place(p.server.Name, p.server.ID); own {
			return "its name" // the usual case, and parsing a name is slower
		}
	}
	_, identified := t.cluster.identities[p.name]
	node, isNode := t.nodeOf(p)
	other, pinned := t.named[p.name]
	at, grammar := t.cfg.Parse(p.server.Name)
	m, marked := t.snap.Hosts[p.server.ID].Marker.Get()
	switch {
	case grammar && p.server.Name == t.cfg.HostName(at.Fleet, at.Group, p.server.ID):
		return "its name"
	case p.role == orphan && p.why.Source != ledger.Marker:
		return "its " + p.why.Source.String()
	case isNode:
		return "Node " + node.Name
	case identified:
		return "its kubelet's identity"
	case pinned && other != p.server.ID:
		return "a pin of its name for server " + other
	case marked && m.Owner() == t.cfg.Owner && m.ServerID == p.server.ID:
		return "its own marker"
	case t.met[p.server.ID]:
		return "the record of an earlier run"
	case t.snap.PinsUnread != "" && p.role != pool:
		return "its host block, while the pins cannot be read"
	}
	return ""
}

// Trust returns what was known of the host's key when the plan was made.
func (h Host) Trust() Trust { return h.trust }

// WrongKey returns why nothing must be sent to a host that answered, because of its key, or nil. The
// connection has compared what was known before. This adds what the host itself reports, and what a recorded
// observation was not compared with.
func (h *Host) WrongKey() *Trouble {
	t, seen := h.trust, h.Seen
	if why := t.Disagrees(seen.Fingerprint); why != "" {
		return CodeWrongHostKey.Trouble(why, t.WrongKeyRemedy(h.Name, seen.Fingerprint))
	}
	if t.Known == "" || seen.Pinned || t.vouched() {
		return nil
	}
	return HostKeyUnknown(h.Name, t.Known, KeyNote(seen.Key, seen.Fingerprint))
}

// WrongKeyRemedy is the remedy for a host whose key differs from the known one.
func WrongKeyRemedy(name string) string {
	return "if the machine was reinstalled on purpose: macfleet hosts forget-key " + name +
		"; otherwise another machine answers at this address: find out which"
}

// pinPlace plans the place of the pins in the cluster if the cluster had one and lost it. Objects that only
// exist after it was made show that it had one.
func (c *computation) pinPlace() {
	lost := c.snap.PinsLost
	if lost == nil || c.plan.Narrowed || !c.cluster.read {
		return
	}
	noted := func(n inventory.Node) bool { return n.HostKey != "" }
	nodes, _ := c.snap.Nodes.Get()
	if len(c.snap.Remembered)+len(c.cluster.identities) == 0 && !slices.ContainsFunc(nodes, noted) {
		return // it was never made
	}
	c.plan.Actions = append(c.plan.Actions, Action{Kind: KeepObject, Object: lost, Origin: drifted,
		Reason: Reason{codeObjectMissing, "the pinned host keys in the cluster are missing"}})
}

// pin returns the action that pins a member's key again, if the pin was lost.
func (c *computation) pin(h *Host) []Action {
	if !h.trust.Lost() || h.Seen.Pinned || !h.Member || len(c.sel.Steps) > 0 || c.snap.PinsUnread != "" {
		return nil
	}
	i := slices.IndexFunc(h.trust.Vouchers, func(v Voucher) bool { return v.Lost })
	return []Action{h.action(PinHost, drifted, CodePinMissing, fmt.Sprintf("the pin is missing; the host's key matches %s", h.trust.Vouchers[i].By),
		Field{"host key", "", KeyNote(h.Seen.Key, h.Seen.Fingerprint)})}
}
