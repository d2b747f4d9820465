package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

var (
	codeKeyNotRotated = NewCode("key-not-rotated", Warning, "the host accepts only the fleet's previous SSH key")
	codePreviousKey   = NewCode("previous-key-listed", NotDrift, "the host lists the fleet's previous SSH key")
	codePreviousKept  = NewCode("previous-key-kept", NotDrift, "the previous SSH key stays on all hosts, because not every host has accepted the new one in this run",
		"fix the hosts that do not accept the new key, then: macfleet apply")
)

// KeyRotation is how far a rotation of the fleet's SSH key is.
type KeyRotation struct {
	Key      string       `json:"key"`      // fingerprint of the new key
	Previous string       `json:"previous"` // fingerprint of the previous one
	Hosts    int          `json:"hosts"`    // members, also those that the run did not select
	Verified int          `json:"verified"` // of these, hosts that the run logged in to with the new key
	Lacking  []KeyLacking `json:"lacking"`  // the others, by name
	Listing  int          `json:"listing"`  // hosts whose authorized keys list the previous key
	Pool     []string     `json:"pool"`     // servers of the pool that accept only the previous key, by name
	Next     string       `json:"next"`     // what a person does next
}

// KeyLacking is a host of which a run does not know that it accepts the new key.
type KeyLacking struct {
	Host string `json:"host"`
	Why  string `json:"why"`
}

// Complete reports whether the run has logged in to every host with the new key.
func (r *KeyRotation) Complete() bool { return r.Hosts > 0 && len(r.Lacking) == 0 }

// String says how many hosts accept the new key, and which of the others an apply cannot reach.
func (r *KeyRotation) String() string {
	const named = 5
	verb := "accept"
	if r.Verified == 1 {
		verb = "accepts"
	}
	text := fmt.Sprintf("%d of %s %s the new key", r.Verified, count(r.Hosts, "host"), verb)
	var names []string
	only := 0
	for _, l := range r.Lacking {
		if l.Why == codeKeyNotRotated.String() {
			only++
		} else {
			names = append(names, l.Host+" ("+l.Why+")")
		}
	}
	if only > 0 {
		text += fmt.Sprintf(", %d only the previous one", only)
	}
	if more := len(names) - named; more > 0 {
		names = append(names[:named], fmt.Sprintf("%d more", more))
	}
	if len(names) > 0 {
		text += "; unknown: " + strings.Join(names, ", ")
	}
	if len(r.Pool) > 0 {
		text += "; in the pool only the previous one: " + sampleOf(r.Pool)
	}
	return text
}

// rotating returns the new and the previous key; ok is false if no previous key is configured.
func (s Snapshot) rotating() (current, previous FleetKey, ok bool) {
	if len(s.FleetKeys) != 2 {
		return FleetKey{}, FleetKey{}, false
	}
	return s.FleetKeys[0], s.FleetKeys[1], true
}

// keyRotation counts the hosts that accepted the new key, or returns nil if no previous key is configured. Members
// that this run does not select count too, and so do orphans: someone may still need to log in there.
func (c *computation) keyRotation() *KeyRotation {
	current, previous, ok := c.snap.rotating()
	if !ok {
		return nil
	}
	r := &KeyRotation{Key: current.Fingerprint, Previous: previous.Fingerprint, Lacking: []KeyLacking{}, Pool: []string{}}
	lacks := func(p *placed, why string) {
		r.Lacking = append(r.Lacking, KeyLacking{cmp.Or(p.name, p.server.Name), why})
	}
	for i := range c.servers {
		p := &c.servers[i]
		seen, asked := c.snap.Hosts[p.server.ID]
		if p.role == pool && seen.LoginKey == previous.Fingerprint {
			r.Pool = append(r.Pool, p.server.Name)
		}
		if p.role != member && p.role != orphan {
			continue
		}
		r.Hosts++
		lists, _ := seen.Lists.Get()
		if slices.Contains(lists, previous.Fingerprint) {
			r.Listing++
		}
		switch {
		case !asked:
			lacks(p, "not contacted")
		case seen.Trouble != nil:
			lacks(p, seen.Trouble.Code.String())
		case seen.LoginKey == current.Fingerprint:
			r.Verified++
		case seen.LoginKey == previous.Fingerprint:
			lacks(p, codeKeyNotRotated.String())
		default:
			lacks(p, "another key logged in")
		}
	}
	for i := range c.gone {
		r.Hosts++
		lacks(&c.gone[i], "not in the inventory")
	}
	slices.Sort(r.Pool)
	slices.SortFunc(r.Lacking, func(a, b KeyLacking) int { return cmp.Compare(a.Host, b.Host) })
	r.Next = r.next(c.vendor.Console())
	return r
}

// authorizeKey returns the action that gives a host the new key, if it accepted only the previous one.
func (c *computation) authorizeKey(h *Host) []Action {
	current, previous, ok := c.snap.rotating()
	if !ok || len(c.sel.Steps) > 0 || c.sel.AdoptOnly || h.Seen.LoginKey != previous.Fingerprint {
		return nil
	}
	return []Action{h.action(AuthorizeKey, drifted, codeKeyNotRotated, "the host accepts only the previous key "+previous.Fingerprint,
		Field{"authorized key", "", current.Fingerprint})}
}

// retireKey returns the action that removes the previous key from a host that lists it. It waits until this run has
// logged in to every host of the configuration with the new key: the person may delete the previous key afterwards.
func (c *computation) retireKey(h *Host) []Action {
	r := c.plan.KeyRotation
	if r == nil || len(c.sel.Steps) > 0 || c.sel.AdoptOnly || !h.Member {
		return nil
	}
	if lists, _ := h.Seen.Lists.Get(); !slices.Contains(lists, r.Previous) {
		return nil
	}
	a := h.action(RetireKey, pending, codePreviousKey, "the host still lists "+r.Previous, Field{"authorized key", r.Previous, ""})
	switch ring := c.snap.Keyring; {
	case !r.Complete():
		a.Deferral = codePreviousKept.Trouble(r.String())
	case ring != nil && ring.Missing(): // it is registered first
		a.Deferral = codePreviousKept.Trouble("the provider's project does not have the new key yet", "macfleet apply")
	case ring != nil: // without it, a server that is installed again would refuse macfleet
		a.Refusal = ring.Trouble()
	}
	return []Action{a}
}

// next says what a person does next.
func (r *KeyRotation) next(console string) string {
	switch {
	case !r.Complete():
		return "macfleet apply adds the new key where it is missing; the previous one stays until every host accepts the new one"
	case r.Listing > 0:
		return "macfleet apply removes the previous key from " + count(r.Listing, "host")
	}
	last := "delete " + r.Previous + " from the project's SSH keys in " + console + ", then remove previous_private_key from the ssh block"
	if len(r.Pool) > 0 { // they are empty; without the previous key macfleet could never claim them
		return "restart " + count(len(r.Pool), "server") + " of the pool in " + console + ", which installs the new key (" + sampleOf(r.Pool) + "); then " + last
	}
	return last
}

// RetireKeysLater leaves the previous key to the next apply: this one has just added the new key, and was not approved for
// removing another.
func (p *Plan) RetireKeysLater() {
	for i := range p.Actions {
		if a := &p.Actions[i]; a.Kind == RetireKey && a.Runs() {
			a.Deferral = codePreviousKept.Trouble(p.KeyRotation.String()+", which this run verified", "macfleet apply")
		}
	}
}
