package kubernetes_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// answering answers the first evictions itself, one status after the other.
func answering(statuses ...metav1.Status) (wrap func(http.RoundTripper) http.RoundTripper, asked *atomic.Int32) {
	asked = new(atomic.Int32)
	return func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			if !strings.HasSuffix(r.URL.Path, "/eviction") {
				return next.RoundTrip(r)
			}
			n := int(asked.Add(1)) - 1
			if n >= len(statuses) {
				return next.RoundTrip(r)
			}
			s := statuses[n]
			s.TypeMeta, s.Status = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, metav1.StatusFailure
			text, err := json.Marshal(s)
			return &http.Response{StatusCode: int(s.Code), Header: http.Header{"Content-Type": {"application/json"}},
				Body: io.NopCloser(bytes.NewReader(text)), Request: r}, err
		})
	}, asked
}

// TestEvictionConflicts takes a conflict for what the Pod shows that is there: it is no proof that the Pod
// is gone.
func TestEvictionConflicts(t *testing.T) {
	t.Parallel()
	conflict := metav1.Status{Code: http.StatusConflict, Reason: metav1.StatusReasonConflict, Message: "the object has been modified"}
	for what, tc := range map[string]struct {
		deleted bool
		want    []string
	}{
		"the same Pod":                  {want: []string{"evicted", "gone"}},
		"the same Pod is being deleted": {deleted: true, want: []string{"gone"}},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			eachCluster(t, func(t *testing.T, c *cluster) {
				c.addNamespace(t)
				o := c.options(t)
				answer, asked := answering(conflict)
				o.Wrap = func(next http.RoundTripper) http.RoundTripper {
					answered := answer(next)
					return roundTripper(func(r *http.Request) (*http.Response, error) {
						// Somebody deletes the Pod between the look and the eviction.
						if tc.deleted && strings.HasSuffix(r.URL.Path, "/eviction") && asked.Load() == 0 {
							c.deletePod(t, "runner", 30)
						}
						return answered.RoundTrip(r)
					})
				}
				client, node := c.client(t, o), c.addNode(t, name(t, "mac"), "")
				c.addPod(t, node.Name, "runner", owned("ReplicaSet", "runner"))
				c.phase(t, "runner", corev1.PodRunning, "")
				c.kubelet(t)
				var said told
				if err := client.EmptyNode(t.Context(), node, time.Minute, false, said.tell); err != nil {
					t.Fatal(err)
				}
				want := []string{}
				for _, w := range tc.want {
					want = append(want, ns(t)+"/runner "+w)
				}
				if !slices.Equal(said.events, want) || len(podsOf(t, client)) != 0 {
					t.Errorf("said %q after %d evictions; want %q; left %+v", said.events, asked.Load(), want, podsOf(t, client))
				}
			})
		})
	}
}

// TestEvictionThrottled does not blame a disruption budget where the server asks everybody to wait.
func TestEvictionThrottled(t *testing.T) {
	t.Parallel()
	eachCluster(t, func(t *testing.T, c *cluster) {
		c.addNamespace(t)
		o := c.options(t)
		busy := metav1.Status{Code: http.StatusTooManyRequests, Reason: metav1.StatusReasonTooManyRequests, Message: "too many requests, please try again later"}
		o.Wrap, _ = answering(busy)
		client, node := c.client(t, o), c.addNode(t, name(t, "mac"), "")
		c.addPod(t, node.Name, "runner", owned("ReplicaSet", "runner"))
		c.phase(t, "runner", corev1.PodRunning, "")
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		said := told{first: func(string) { cancel() }}
		err := client.EmptyNode(ctx, node, time.Hour, false, said.tell)
		if !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "too busy") || strings.Contains(err.Error(), "budget") {
			t.Errorf("it says: %v", err)
		}
		if len(said.events) != 1 || strings.Contains(said.events[0], "budget") {
			t.Errorf("said %q", said.events)
		}
	})
}
