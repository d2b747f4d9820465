package kubernetes_test

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/macfleet/macfleet/internal/lock"
	"github.com/macfleet/macfleet/plan"
	"github.com/macfleet/macfleet/providers/kubernetes"
)

func TestLeaseName(t *testing.T) {
	t.Parallel()
	names := []string{kubernetes.LeaseName("acme", ""), kubernetes.LeaseName("acme", "prod"), kubernetes.LeaseName("acme-prod", ""),
		kubernetes.LeaseName("acme-prod", "x"), kubernetes.LeaseName("acme", "prod-x")}
	if want := "macfleet.acme.prod"; names[1] != want {
		t.Errorf("%q, want %q", names[1], want)
	}
	slices.Sort(names)
	if n := len(slices.Compact(names)); n != 5 {
		t.Errorf("two configurations have one Lease: %q", names)
	}
}

// TestLease is the store that the lock needs: a compare-and-swap by version, on a
// record that comes back as it was put.
func TestLease(t *testing.T) {
	t.Parallel()
	eachCluster(t, func(t *testing.T, c *cluster) {
		client := c.client(t, c.options(t))
		l := client.Lease(kubernetes.LeaseName("acme", "prod"))
		at := time.Date(2026, 11, 21, 10, 0, 0, 123456000, time.UTC)
		want := lock.Record{Held: true, Run: plan.Run{ID: "k3h7", Who: "ann@laptop, größer", Epoch: 41, Started: at.Truncate(time.Second)}, Machine: "laptop",
			Since: at, Renewed: at.Add(time.Second), Lasts: 30 * time.Second,
			Place: lock.Place{ID: "5a4d6b3c-0000-4000-8000-000000000002", Name: "größer (https://api.acme.test:6443)"}}
		if _, err := l.Put(t.Context(), want, ""); !errors.Is(err, kubernetes.ErrUnprepared) {
			t.Errorf("without the namespace: %v", err)
		}
		c.addNamespace(t)
		if _, version, err := l.Get(t.Context()); version != "" || err != nil {
			t.Fatalf("nothing exists, and it has version %q, %v", version, err)
		}
		first, err := l.Put(t.Context(), want, "")
		must(t, err)
		got, version, err := l.Get(t.Context())
		if err != nil || version != first {
			t.Fatalf("version %q after %q, %v", version, first, err)
		}
		if diff := cmp.Diff(want, got, cmp.Comparer(time.Time.Equal)); diff != "" {
			t.Errorf("record (-want +got):\n%s", diff)
		}
		want.Renewed = want.Renewed.Add(time.Microsecond)
		second, err := l.Put(t.Context(), want, first)
		if err != nil || second == first {
			t.Fatalf("the same again has version %q after %q, %v: no one sees that it was renewed", second, first, err)
		}
		for _, stale := range []string{"", first, strings.Fields(first)[0] + " 7777777", "another-uid " + strings.Fields(second)[1]} {
			if _, err := l.Put(t.Context(), want, stale); !errors.Is(err, lock.ErrConflict) {
				t.Errorf("over version %q: %v", stale, err)
			}
		}
		want.Held = false
		must(t, errOf(l.Put(t.Context(), want, second)))
		if got, _, err = l.Get(t.Context()); err != nil || got.Held || got.Run.ID != "k3h7" || got.Run.Epoch != 41 || got.Place != want.Place {
			t.Errorf("free: %+v, %v", got, err)
		}
		if seen, err := l.Look(t.Context()); err != nil || seen == nil || !seen.Free || seen.Alive || seen.ClusterUID != want.Place.ID || seen.Cluster != want.Place.Name {
			t.Errorf("a read at a free one, whose run saw a cluster: %+v, %v", seen, err)
		}
		_, version, _ = l.Get(t.Context())
		must(t, c.admin.CoordinationV1().Leases(ns(t)).Delete(t.Context(), "macfleet.acme.prod", metav1.DeleteOptions{}))
		if _, err := l.Put(t.Context(), want, version); !errors.Is(err, lock.ErrConflict) {
			t.Errorf("over a deleted one: %v", err)
		}
	})
}

// TestLock takes the lock with macfleet's own account: its rights are enough. One request
// shows who has it.
func TestLock(t *testing.T) {
	t.Parallel()
	eachCluster(t, func(t *testing.T, c *cluster) {
		boss, o := c.prepared(t), c.options(t)
		var a asked
		o.Wrap = a.wrap
		store := c.itself(t, boss, o).Lease(kubernetes.LeaseName("acme", "prod"))
		var ann *lock.Lock
		eventually(t, "its rights count", func() (err error) {
			ann, err = lock.Acquire(t.Context(), lock.Options{Store: store, Run: plan.Run{ID: "ann", Who: "ann@laptop"}, Machine: "laptop"})
			return err
		})
		a.lines = nil
		seen, err := store.Look(t.Context())
		if err != nil || seen == nil || seen.Run.Who != "ann@laptop" || !seen.Alive || seen.Since.IsZero() {
			t.Errorf("a read shows %+v, %v", seen, err)
		}
		if diff := cmp.Diff([]string{"GET /apis/coordination.k8s.io/v1/namespaces/" + ns(t) + "/leases/macfleet.acme.prod"}, a.lines); diff != "" {
			t.Errorf("a read asks (-want +got):\n%s", diff)
		}
		bob := lock.Options{Store: store, Run: plan.Run{ID: "bob"}}
		var held *lock.HeldError
		if err := errOf(lock.Acquire(t.Context(), bob)); !errors.As(err, &held) || held.Record.Machine != "laptop" {
			t.Errorf("at the same time: %v", err)
		}
		if r, err := ann.Raise(t.Context(), 41); err != nil || r.Epoch != 42 {
			t.Errorf("raised to %d, %v", r.Epoch, err)
		}
		must(t, ann.Check(), ann.Release(t.Context()))
		if seen, err := store.Look(t.Context()); seen != nil || err != nil {
			t.Errorf("free: %+v, %v", seen, err)
		}
		next, err := lock.Acquire(t.Context(), bob)
		must(t, err)
		if next.Run().Epoch != 43 {
			t.Errorf("the next epoch: %+v", next.Run())
		}
		must(t, next.Release(t.Context()))
	})
}

// TestLeaseByHand takes what someone else wrote for what it is.
func TestLeaseByHand(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)
	answers := texts(http.StatusNotFound, map[string]string{
		"/apis/coordination.k8s.io/v1/namespaces/macfleet/leases/a": `{"kind":"Lease","apiVersion":"coordination.k8s.io/v1","metadata":{"name":"a","resourceVersion":"7",
			"annotations":{"macfleet.dev/run":"old","macfleet.dev/who":"ann","macfleet.dev/machine":"desk","macfleet.dev/started":"2026-11-21T09:00:00Z"}},"spec":{"holderIdentity":"kubectl","leaseDurationSeconds":40,"renewTime":"2026-11-21T09:58:00.000000Z"}}`,
		"/apis/coordination.k8s.io/v1/namespaces/macfleet/leases/b": `{"kind":"Lease","apiVersion":"coordination.k8s.io/v1","metadata":{"name":"b","resourceVersion":"8"}}`,
	})
	s := serve(t, kubernetes.Options{}, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Date", now.Format(http.TimeFormat))
		answers(w, r)
	})
	seen, err := s.Lease("a").Look(t.Context())
	if err != nil || seen == nil || seen.Run.ID != "kubectl" || seen.Run.Who != "kubectl" || seen.Alive {
		t.Errorf("by hand: %+v, %v", seen, err)
	}
	if r, _, err := s.Lease("a").Get(t.Context()); err != nil || r.Machine == "desk" || !r.Run.Started.IsZero() {
		t.Errorf("the person who took it by hand is not where the run before was: %+v, %v", r, err)
	}
	if seen, err := s.Lease("b").Look(t.Context()); seen != nil || err != nil {
		t.Errorf("empty: %+v, %v", seen, err)
	}
	if seen, err := s.Lease("c").Look(t.Context()); seen != nil || err != nil {
		t.Errorf("none: %+v, %v", seen, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Lease("a").Look(ctx); err == nil || !strings.Contains(err.Error(), "read lease macfleet/a: ") {
		t.Errorf("not read: %v", err)
	}
}
