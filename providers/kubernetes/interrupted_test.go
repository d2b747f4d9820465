package kubernetes_test

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/internal/scripttest"
	"github.com/macfleet/macfleet/providers/kubernetes"
)

// interrupted lets a number of requests through and then breaks the connection: before
// the request, or after it was carried out.
type interrupted struct {
	next  http.RoundTripper
	left  *atomic.Int64
	after bool
}

var errInterrupted = errors.New("interrupted")

func (s interrupted) RoundTrip(r *http.Request) (*http.Response, error) {
	left := s.left.Add(-1)
	if left < -1 || left == -1 && !s.after {
		return nil, errInterrupted
	}
	answer, err := s.next.RoundTrip(r)
	if left == -1 && err == nil {
		_ = answer.Body.Close()
		return nil, errInterrupted
	}
	return answer, err
}

// TestIdentifyInterrupted kills the making of an identity at each of its requests that is
// this run's, before and after the cluster carried it out: the next one completes it,
// and nothing exists twice.
func TestIdentifyInterrupted(t *testing.T) {
	t.Parallel()
	eachCluster(t, func(t *testing.T, c *cluster) {
		client := c.prepared(t)
		made := 1
		var whole asked
		o := c.options(t)
		o.Wrap = whole.wrap
		must(t, errOf(c.client(t, o).Identify(t.Context(), name(t, "whole"))))
		var kinds []string
		for _, request := range whole.lines {
			method, _, _ := strings.Cut(request, " ")
			kinds = append(kinds, method+", before", method+", after")
		}
		for place := range scripttest.Places(t, kinds) {
			n, after := (place-1)/2, place%2 == 0
			made++
			host := name(t, fmt.Sprintf("%d-%t", n, after))
			o := c.options(t)
			var left atomic.Int64
			left.Store(int64(n))
			o.Wrap = func(next http.RoundTripper) http.RoundTripper { return interrupted{next, &left, after} }
			_, err := c.client(t, o).Identify(t.Context(), host)
			// How often the token's Secret is read depends on when the cluster fills it, so the last places may not be reached.
			if unreached := err == nil && left.Load() >= 0; !unreached && !errors.Is(err, errInterrupted) {
				t.Errorf("interrupted at %d: %v", n, err)
			}
			identified(t, client, host)
			if again, err := client.Identify(t.Context(), host); err != nil || !again.Complete() {
				t.Errorf("interrupted at %d, again: %+v, %v", n, again, err)
			}
		}
		for _, i := range identities(t, client) {
			if !i.Complete() {
				t.Errorf("incomplete: %+v", i)
			}
		}
		c.count(t, made)
	})
}

// TestReleaseInterrupted kills the release of a Pod at each of its requests, before and after the cluster carried it out:
// the Pod is gone, or shows that it is stuck. It was deleted while it ran, and its kubelet never says that it ended:
// removing only the finalizer, the cluster would continue waiting.
func TestReleaseInterrupted(t *testing.T) {
	t.Parallel()
	eachCluster(t, func(t *testing.T, c *cluster) {
		c.addNamespace(t)
		mac, o := name(t, "mac"), c.options(t)
		client := c.client(t, o)
		c.addNode(t, mac, "")
		const interruptions = 8
		for i := range interruptions {
			pod := fmt.Sprint(i)
			c.addPod(t, mac, pod, func(p *corev1.Pod) {
				p.Finalizers = []string{inventory.VMFinalizer, "tart-kubelet.acme.dev/vm-cleanup"}
			})
			c.phase(t, pod, corev1.PodRunning, "") // the cluster waits for the kubelet's word too
			c.deletePod(t, pod, 1)
			c.phase(t, pod, corev1.PodFailed, "TartRunExited")
		}
		eventually(t, "their time is up", func() error {
			if slices.ContainsFunc(podsOf(t, client), func(p inventory.Pod) bool { return !p.Overdue }) {
				return errors.New("not yet")
			}
			return nil
		})
		other := podsOf(t, client)[0]
		other.UID = "another"
		if err := client.ReleasePod(t.Context(), other); !errors.Is(err, kubernetes.ErrReplaced) {
			t.Errorf("another of its name: %v", err)
		}
		for i, p := range podsOf(t, client) {
			var left atomic.Int64
			left.Store(int64(i / 2))
			cut := o
			cut.Wrap = func(next http.RoundTripper) http.RoundTripper { return interrupted{next, &left, i%2 == 1} }
			if err := c.client(t, cut).ReleasePod(t.Context(), p); errors.Is(err, errInterrupted) != (i < interruptions-2) || i >= interruptions-2 && err != nil {
				t.Errorf("interruption %d: %v", i, err)
			}
			for _, p := range podsOf(t, client) {
				if !p.Held() {
					t.Errorf("interruption %d: nothing shows that it is stuck: %+v", i, p)
				}
			}
			must(t, client.ReleasePod(t.Context(), p), client.ReleasePod(t.Context(), p)) // the second time it is gone
		}
		if rest := podsOf(t, client); len(rest) > 0 {
			t.Errorf("left: %+v", rest)
		}
	})
}

// TestPrepareInterrupted kills the preparation of a cluster at those of its requests that are
// this run's, and none of them at the end: the next one completes it.
func TestPrepareInterrupted(t *testing.T) {
	t.Parallel()
	eachCluster(t, func(t *testing.T, c *cluster) {
		const each, last = 9, 117
		finished := false
		kinds := slices.Repeat([]string{"after", "before"}, last/each)[:last/each]
		for place := range scripttest.Places(t, append(kinds, "not interrupted")) {
			if finished {
				break
			}
			n := each * (place - 1)
			if place == len(kinds)+1 {
				n = last
			}
			t.Run(fmt.Sprint(n), func(t *testing.T) {
				o := c.withCAPI(t)
				c.control(t)
				var left atomic.Int64
				left.Store(int64(n))
				cut := o
				cut.Wrap = func(next http.RoundTripper) http.RoundTripper { return interrupted{next, &left, n%2 == 0} }
				_, err := c.client(t, cut).Prepare(t.Context(), kubernetes.PrepareOptions{})
				if finished = err == nil; !finished && !errors.Is(err, errInterrupted) {
					t.Errorf("interrupted: %v", err)
				}
				client := c.client(t, o)
				prepare(t, client)
				again, err := client.Prepare(t.Context(), kubernetes.PrepareOptions{Dry: true})
				if left := wrong(again); err != nil || len(left) != 0 {
					t.Errorf("again: %v, %v", left, err)
				}
			})
		}
		if !finished {
			t.Error("no preparation went through: more requests than interruptions")
		}
	})
}
