package kubernetes

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/plan"
)

// A ConfigMap holds 1 MiB. A pin takes about 230 bytes with an ed25519 key, so
// that some 4,500 hosts fit; what does not is refused by the cluster.
const (
	pinsName = "macfleet-host-keys"
	pinsKey  = "pins.json" // a JSON object a line, by name
	pinTries = 20          // whole fleets may be pinned by several runs at once
)

// PinStore keeps pins in one place, as a file does.
type PinStore interface {
	All() ([]plan.Pin, error)
	Update(change func([]plan.Pin) []plan.Pin) error
}

// PinOptions name the stores next to the cluster's own pins.
type PinOptions struct {
	Cache PinStore // written after each answer of the cluster; nil = none
	// Own is what was pinned on this machine before the cluster kept the pins: what
	// only it knows counts, and the next Update moves it into the cluster. nil = none.
	Own PinStore
	// Unprepared keeps the pins while the cluster lacks their ConfigMap, which
	// Prepare makes; nil: the first Update makes it.
	Unprepared PinStore
}

// Pins keeps host keys in a ConfigMap of macfleet's namespace. It is safe for
// use by several goroutines and several processes.
type Pins struct {
	ctx     context.Context
	client  *Client
	options PinOptions
	// updating keeps the hosts of one run from competing for the ConfigMap: with 32
	// at once some lost every try. Others' runs are only met by the retries.
	updating sync.Mutex

	recalling sync.Mutex
	recalled  Recollection
}

// Recollection is what is left of pins besides those that the cluster keeps.
type Recollection struct {
	Remembered []plan.Pin        // the cluster said them once, and does not know them any more
	Lost       *inventory.Object // the ConfigMap, if it is missing
}

// Recall returns what the last All has found besides the pins.
func (p *Pins) Recall() Recollection {
	p.recalling.Lock()
	defer p.recalling.Unlock()
	return p.recalled
}

// remember finds what the cluster said once and does not know any more, and keeps it in the cache:
// another machine in the place of a member must be noticed, even after someone emptied the cluster's pins.
func (p *Pins) remember(pins []plan.Pin, lost *inventory.Object) error {
	found := Recollection{Lost: lost}
	if cache := p.options.Cache; cache != nil {
		cached, err := cache.All()
		if err != nil {
			return err
		}
		live, _ := plan.WithoutReleased(cached) // the note of a release shows no member, also if the cluster has lost it
		found.Remembered = notEnded(live, pins)
		if lost == nil {
			if err := replace(cache, slices.Concat(pins, found.Remembered)); err != nil {
				return err
			}
		}
	}
	p.recalling.Lock()
	defer p.recalling.Unlock()
	p.recalled = found
	return nil
}

// notEnded returns the pins that another machine's work does not explain: no stored pin ends them.
func notEnded(cached, stored []plan.Pin) []plan.Pin {
	return slices.DeleteFunc(slices.Clone(cached), func(c plan.Pin) bool {
		return slices.ContainsFunc(stored, func(p plan.Pin) bool { return p.Ends(c) })
	})
}

// without returns the pins of servers that other pins are not about.
func without(pins, other []plan.Pin) []plan.Pin {
	known := make(map[string]bool, len(other))
	for _, p := range other {
		known[p.ServerID] = true
	}
	return slices.DeleteFunc(slices.Clone(pins), func(p plan.Pin) bool { return known[p.ServerID] })
}

// Pins returns the cluster's store of host keys. The context bounds all its
// calls, which take none themselves.
func (c *Client) Pins(ctx context.Context, o PinOptions) *Pins {
	return &Pins{ctx: ctx, client: c, options: o}
}

// All returns every pin. It writes nothing into the cluster.
func (p *Pins) All() ([]plan.Pin, error) {
	pins, version, err := p.read()
	if err != nil {
		return nil, err
	}
	var lost *inventory.Object
	if p.unprepared(version) {
		o := p.client.desiredPins().object()
		o.State, o.Why = inventory.ObjectMissing, "it was deleted, together with the pinned host keys"
		lost = &o
	}
	all, err := p.withOwn(pins)
	if err == nil {
		err = p.remember(all, lost)
	}
	return all, err
}

// Update replaces the pins with the result of change. On a conflict it
// reads them again, so change may be called several times.
func (p *Pins) Update(change func([]plan.Pin) []plan.Pin) error {
	p.updating.Lock()
	defer p.updating.Unlock()
	var last error
	for try := range pinTries {
		before, version, err := p.read()
		if err != nil {
			return err
		}
		if p.unprepared(version) {
			return p.options.Unprepared.Update(change)
		}
		all, err := p.withOwn(before)
		if err != nil {
			return err
		}
		after := change(slices.Clone(all))
		slices.SortFunc(after, plan.InStore)
		if last = p.write(before, after, version); last == nil {
			// This machine's own are the cluster's now: one that the cluster forgets later must
			// not come back from here.
			return errors.Join(p.cache(all, after), replace(p.options.Own, nil))
		}
		if !apierrors.IsConflict(last) && !apierrors.IsAlreadyExists(last) {
			break
		}
		if err := sleep(p.ctx, time.Duration(try)*10*time.Millisecond); err != nil {
			return err
		}
	}
	return fmt.Errorf("write pinned host keys into configmap %s/%s: %w", p.client.options.Namespace, pinsName, explain(last))
}

// cache notes what the cluster says since an update. What was remembered before stays so, unless
// the update is about it.
func (p *Pins) cache(before, after []plan.Pin) error {
	if p.options.Cache == nil {
		return nil
	}
	return p.options.Cache.Update(func(cached []plan.Pin) []plan.Pin {
		removed := without(before, after)
		return slices.Concat(after, notEnded(without(cached, removed), after))
	})
}

// unprepared reports whether another store keeps the pins as yet.
func (p *Pins) unprepared(version string) bool { return version == "" && p.options.Unprepared != nil }

// withOwn adds the pins of servers that only this machine's own store knows. Of
// one that both know, the cluster's counts: it is what other runs go by. Its note
// of a release does not count against a pin that is newer.
func (p *Pins) withOwn(pins []plan.Pin) ([]plan.Pin, error) {
	if p.options.Own == nil {
		return pins, nil
	}
	own, err := p.options.Own.All()
	if err != nil {
		return nil, err
	}
	live, _ := plan.WithoutReleased(own) // another machine may have claimed the server since
	return plan.JoinPins(pins, live), nil
}

// replace puts pins into a store in place of those that it has; nil: there is no store.
func replace(store PinStore, pins []plan.Pin) error {
	if store == nil {
		return nil
	}
	return store.Update(func([]plan.Pin) []plan.Pin { return pins })
}

func (p *Pins) read() (pins []plan.Pin, version string, err error) {
	ns := p.client.options.Namespace
	m, err := p.client.api.CoreV1().ConfigMaps(ns).Get(p.ctx, pinsName, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, "", nil
	}
	if err == nil {
		pins, err = parsePins(m.Data[pinsKey])
	}
	if err != nil {
		return nil, "", fmt.Errorf("read pinned host keys from configmap %s/%s: %w", ns, pinsName, explain(err))
	}
	return pins, m.ResourceVersion, nil
}

// write puts the pins in the place of the version that was read; "" = there was
// none.
func (p *Pins) write(before, after []plan.Pin, version string) error {
	if slices.Equal(before, after) {
		return nil
	}
	text, err := renderPins(after)
	if err != nil {
		return err
	}
	m := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: p.client.options.Namespace, Name: pinsName, ResourceVersion: version,
		Labels: p.client.marks(false)}, Data: map[string]string{pinsKey: text}}
	maps := p.client.api.CoreV1().ConfigMaps(m.Namespace)
	if version == "" {
		_, err = maps.Create(p.ctx, m, metav1.CreateOptions{FieldManager: manager})
	} else {
		_, err = maps.Update(p.ctx, m, metav1.UpdateOptions{FieldManager: manager})
	}
	return err
}

func renderPins(pins []plan.Pin) (string, error) {
	var b strings.Builder
	for _, p := range pins {
		p.Since = p.Since.UTC().Truncate(time.Second)
		text, err := json.Marshal(p)
		if err != nil {
			return "", err
		}
		b.Write(append(text, '\n'))
	}
	return b.String(), nil
}

// parsePins reads the ConfigMap's text. A line that cannot be read is an error,
// because a lost pin would accept any key.
func parsePins(text string) ([]plan.Pin, error) {
	var pins []plan.Pin
	for i, line := range strings.Split(text, "\n") {
		if strings.TrimSpace(line) == "" {
			continue
		}
		var pin plan.Pin
		err := json.Unmarshal([]byte(line), &pin)
		if err == nil && (pin.Name == "" || pin.ServerID == "" || pin.Key == "") {
			err = errors.New("name, server_id or key is missing")
		}
		if err != nil {
			return nil, fmt.Errorf("%s, line %d: %w; fix: correct or remove the line", pinsKey, i+1, err)
		}
		pin.Since = pin.Since.UTC()
		pins = append(pins, pin)
	}
	return pins, nil
}
