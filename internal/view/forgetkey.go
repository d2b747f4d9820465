package view

import (
	"fmt"
	"slices"

	"github.com/macfleet/macfleet/plan"
)

// KeyOffer is a host whose key will be forgotten, with the key that it offers now.
type KeyOffer struct {
	plan.KeyHolder
	Key string // "type base64"; empty: its server is gone
}

// Agrees reports whether the offered key is pinned already, and no other source contradicts it.
func (o KeyOffer) Agrees() bool {
	pin := o.Trust.Pin
	given := o.Pooled && pin != nil && !pin.Unfinished // it keeps its server from being claimed
	return pin != nil && !o.Gone && !given && pin.Key == o.Key && o.Trust.Disagrees(plan.Fingerprint(o.Key)) == ""
}

// Deciding returns the fingerprint that a person compares: of the offered key or, where the server
// is gone, of the pinned one.
func (o KeyOffer) Deciding() string {
	if o.Gone && o.Trust.Pin != nil {
		return plan.Fingerprint(o.Trust.Pin.Key)
	}
	return plan.Fingerprint(o.Key)
}

// Unfinished reports whether the key belongs to a claim that has not finished, or not started.
func (o KeyOffer) Unfinished() bool {
	return o.Pooled || o.Trust.Pin != nil && o.Trust.Pin.Unfinished
}

// OfferedKeys shows what is known of the keys of hosts, and which key each offers now.
func (t *Text) OfferedKeys(all []KeyOffer) {
	for _, o := range all {
		t.Say(o.Name)
		t.line(4, "", "pinned   "+pinned(o.Trust.Pin))
		for _, v := range o.Trust.Vouchers {
			t.line(4, "", fmt.Sprintf("known    %s (%s)", v.Key, v.By))
		}
		switch {
		case o.Gone:
			t.line(4, "", "offered  nothing: the server no longer exists, so the pin is removed")
		case o.Agrees():
			t.line(4, "", "offered  the pinned key: nothing to do")
		default:
			t.line(4, "", "offered  "+plan.KeyNote(o.Key, plan.Fingerprint(o.Key)))
		}
	}
	if i := slices.IndexFunc(all, func(o KeyOffer) bool { return !o.Gone && !o.Agrees() }); i >= 0 {
		t.Say("Before you accept a key, " + plan.CompareKey(all[i].Key))
	}
}

func pinned(p *plan.Pin) string {
	if p == nil {
		return "no key"
	}
	return plan.KeyNote(p.Key, plan.Fingerprint(p.Key)) + ", since " + p.Since.UTC().Format("2006-01-02")
}

// KeyQuestion asks whether the keys are accepted.
func KeyQuestion(all []KeyOffer) string {
	gone := 0
	for _, o := range all {
		if o.Gone {
			gone++
		}
	}
	switch {
	case gone == len(all):
		return fmt.Sprintf("Remove the pins of %s?", count(gone, "server"))
	case gone > 0:
		return fmt.Sprintf("Pin the offered keys of %s, and remove the pins of %s?", count(len(all)-gone, "host"), count(gone, "server"))
	}
	return fmt.Sprintf("Pin the offered keys of %s?", count(len(all), "host"))
}

// AcceptedKeys says which keys were pinned, and which pins removed.
func (t *Text) AcceptedKeys(all []KeyOffer) {
	for _, o := range all {
		if o.Gone {
			t.Say("Removed the pinned key of " + o.Name + ".")
			continue
		}
		t.Say(fmt.Sprintf("Pinned the key %s of %s.", plan.Fingerprint(o.Key), o.Name))
	}
}
