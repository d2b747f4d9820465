package kubernetes_test

import (
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/macfleet/macfleet/hosts"
	"github.com/macfleet/macfleet/internal/engine"
	"github.com/macfleet/macfleet/plan"
	"github.com/macfleet/macfleet/providers/kubernetes"
)

var _ engine.Pins = (*kubernetes.Pins)(nil)

const hostKey = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGyHaeYiPA5cFYdMyyo0HGSI9ZB5m4NSrQaCPJV0uz3J"

func pin(i int) plan.Pin {
	return plan.Pin{Name: fmt.Sprintf("acme-%02d", i), ServerID: fmt.Sprintf("id-%02d", i), Key: hostKey, Since: time.Date(2026, 11, 1, 0, 0, i, 0, time.UTC)}
}

func add(pins ...plan.Pin) func([]plan.Pin) []plan.Pin {
	return func(have []plan.Pin) []plan.Pin { return append(have, pins...) }
}

func holds(t *testing.T, store kubernetes.PinStore, want ...plan.Pin) {
	t.Helper()
	have, err := store.All()
	must(t, err)
	is(t, have, want)
}

// TestPins keeps the pins in the cluster, takes over those of this machine once,
// and answers nothing where the cluster does not.
func TestPins(t *testing.T) {
	t.Parallel()
	eachCluster(t, func(t *testing.T, c *cluster) {
		c.addNamespace(t)
		dir := t.TempDir()
		own, cache := hosts.KnownHosts{Path: filepath.Join(dir, "own")}, hosts.KnownHosts{Path: filepath.Join(dir, "cache")}
		note := pin(4) // another machine may have claimed its server since
		note.Stage = plan.Released
		must(t, own.Update(add(pin(1), pin(2), note)))
		store := c.client(t, c.options(t)).Pins(t.Context(), kubernetes.PinOptions{Own: own, Cache: cache})
		holds(t, store, pin(1), pin(2))
		if _, err := c.admin.CoreV1().ConfigMaps(ns(t)).Get(t.Context(), "macfleet-host-keys", metav1.GetOptions{}); err == nil {
			t.Error("a read wrote into the cluster")
		}
		must(t, store.Update(add(pin(3))))
		holds(t, store, pin(1), pin(2), pin(3))
		holds(t, own)
		holds(t, cache, pin(1), pin(2), pin(3))
		// What another machine drops does not come back from here.
		other := c.client(t, c.options(t)).Pins(t.Context(), kubernetes.PinOptions{})
		must(t, other.Update(func(have []plan.Pin) []plan.Pin { return have[1:] }))
		holds(t, store, pin(2), pin(3))
		// This machine remembers it as a witness: a member without a pin must not look new.
		holds(t, cache, pin(1), pin(2), pin(3))
		is(t, store.Recall(), kubernetes.Recollection{Remembered: []plan.Pin{pin(1)}})
		// What this machine drops itself does not count as a witness.
		must(t, store.Update(func(have []plan.Pin) []plan.Pin { return have[1:] }))
		holds(t, cache, pin(1), pin(3))

		// Of a server that was released once, the pin that this machine stored later counts.
		note, again := pin(5), pin(5)
		note.Stage, again.Since = plan.Released, again.Since.Add(time.Hour)
		must(t, other.Update(add(note)))
		must(t, own.Update(add(again)))
		holds(t, store, pin(3), again)

		o := c.options(t)
		o.Token = "refused"
		cut := c.client(t, o)
		if _, err := cut.Pins(t.Context(), kubernetes.PinOptions{Cache: cache}).All(); err == nil {
			t.Error("an unasked cache answered")
		}
		if err := cut.Pins(t.Context(), kubernetes.PinOptions{Cache: cache}).Update(add(pin(4))); err == nil {
			t.Error("a pin was kept in no place")
		}
	})
}

// TestPinsReplacedElsewhere: a key that another machine stored in place of this one's copy contradicts it, until a pin says what ended it.
func TestPinsReplacedElsewhere(t *testing.T) {
	t.Parallel()
	eachCluster(t, func(t *testing.T, c *cluster) {
		c.addNamespace(t)
		cache := hosts.KnownHosts{Path: filepath.Join(t.TempDir(), "cache")}
		here := c.client(t, c.options(t)).Pins(t.Context(), kubernetes.PinOptions{Cache: cache})
		there := c.client(t, c.options(t)).Pins(t.Context(), kubernetes.PinOptions{})
		must(t, here.Update(add(pin(1))))
		other := pin(1)
		other.Key = strings.Replace(hostKey, "uz3J", "uz3K", 1)
		put := func(p plan.Pin) {
			must(t, there.Update(func(have []plan.Pin) []plan.Pin { return append([]plan.Pin{p}, have[1:]...) }))
			must(t, here.Update(add(pin(len(p.Earlier)+2)))) // about another server
		}
		put(other)
		for range 2 {
			_, err := here.All()
			must(t, err)
			is(t, here.Recall().Remembered, []plan.Pin{pin(1)})
		}
		put(other.Replaces(pin(1)))
		_, err := here.All()
		must(t, err)
		is(t, len(here.Recall().Remembered), 0)
		released := pin(1)
		released.Stage = plan.Released
		put(released)
		must(t, there.Update(func([]plan.Pin) []plan.Pin { return nil }))
		_, err = here.All()
		must(t, err)
		for _, p := range here.Recall().Remembered {
			if p.ServerID == released.ServerID {
				t.Errorf("the lost note of a release counts as a pin: %+v", p)
			}
		}
	})
}

// TestPinsAtOnce loses no pin of runs that write at the same time.
func TestPinsAtOnce(t *testing.T) {
	t.Parallel()
	eachCluster(t, func(t *testing.T, c *cluster) {
		c.addNamespace(t)
		client := c.client(t, c.options(t))
		var wg sync.WaitGroup
		var want []plan.Pin
		for i := range 8 {
			want = append(want, pin(i))
			wg.Go(func() {
				if err := client.Pins(t.Context(), kubernetes.PinOptions{}).Update(add(pin(i))); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		holds(t, client.Pins(t.Context(), kubernetes.PinOptions{}), want...)
	})
}

// TestPinsOfManyHosts: the hosts of one run enter their keys through one store, and
// none of them is refused, however many they are.
func TestPinsOfManyHosts(t *testing.T) {
	t.Parallel()
	eachCluster(t, func(t *testing.T, c *cluster) {
		c.addNamespace(t)
		o := c.options(t)
		var refused conflicts
		o.Wrap = func(next http.RoundTripper) http.RoundTripper {
			refused.next = next
			return &refused
		}
		store := c.client(t, o).Pins(t.Context(), kubernetes.PinOptions{})
		var wg sync.WaitGroup
		var want []plan.Pin
		for i := range 99 {
			want = append(want, pin(i))
			wg.Go(func() {
				if err := store.Update(add(pin(i))); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		holds(t, store, want...)
		if n := refused.seen.Load(); n > 0 {
			t.Errorf("the hosts of one run were in each other's way %d times", n)
		}
	})
}

// conflicts counts the writes that the cluster refused, because another came first.
type conflicts struct {
	next http.RoundTripper
	seen atomic.Int64
}

// RoundTrip passes a request on.
func (c *conflicts) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := c.next.RoundTrip(r)
	if err == nil && answer.StatusCode == http.StatusConflict {
		c.seen.Add(1)
	}
	return answer, err
}

// TestPinsDamaged takes no lost pin for none: it would accept any key.
func TestPinsDamaged(t *testing.T) {
	t.Parallel()
	eachCluster(t, func(t *testing.T, c *cluster) {
		c.addNamespace(t)
		store, maps := c.client(t, c.options(t)).Pins(t.Context(), kubernetes.PinOptions{}), c.admin.CoreV1().ConfigMaps(ns(t))
		m, err := maps.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "macfleet-host-keys"}}, metav1.CreateOptions{})
		must(t, err)
		for _, line := range []string{`{"name": "acme-01"}`, `{"name": "acme-01", "key": "k"}`, `{"name": "acme-01", "server_id": "id-01"}`,
			`{"server_id": "id-01", "key": "k"}`, `acme-01`} {
			m.Data = map[string]string{"pins.json": "\n" + line + "\n"}
			m, err = maps.Update(t.Context(), m, metav1.UpdateOptions{})
			must(t, err)
			for _, err := range []error{errOf(store.All()), store.Update(add(pin(1)))} {
				if err == nil || !strings.Contains(err.Error(), "line 2") || !strings.Contains(err.Error(), "fix: ") {
					t.Errorf("%s: %v", line, err)
				}
			}
		}
	})
}

func errOf[T any](_ T, err error) error { return err }
