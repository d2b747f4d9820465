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

// answering answers the first requests for paths with this end itself, one status after the other.
func answering(end string, statuses ...metav1.Status) (wrap func(http.RoundTripper) http.RoundTripper, asked *atomic.Int32) {
	asked = new(atomic.Int32)
	return func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			if !strings.HasSuffix(r.URL.Path, end) {
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

// TestEvictionConflicts reads the Pod after a conflict: a conflict does not show that the Pod
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
				answer, asked := answering("/eviction", conflict)
				o.Wrap = func(next http.RoundTripper) http.RoundTripper {
					answered := answer(next)
					return roundTripper(func(r *http.Request) (*http.Response, error) {
						// Someone deletes the Pod between the look and the eviction.
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
				var said podReports
				if err := client.EvictPods(t.Context(), node, time.Minute, false, said.add); err != nil {
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

// TestDrainNamesForeignNamespaces: a Pod that never goes holds a drain until its time is up. If it is in a namespace in
// which its kubelet may do nothing, the error says that.
func TestDrainNamesForeignNamespaces(t *testing.T) {
	t.Parallel()
	for what, foreign := range map[string]bool{"foreign": true, "listed": false} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			eachCluster(t, func(t *testing.T, c *cluster) {
				c.addNamespace(t)
				o := c.options(t)
				if o.PodNamespaces = nil; !foreign {
					o.PodNamespaces = []string{ns(t)}
				}
				client, node := c.client(t, o), c.addNode(t, name(t, "mac"), "")
				c.addPod(t, node.Name, "runner", owned("ReplicaSet", "runner"))
				c.phase(t, "runner", corev1.PodRunning, "")
				var said podReports
				err := client.EvictPods(t.Context(), node, 1500*time.Millisecond, false, said.add)
				if !errors.Is(err, context.DeadlineExceeded) || strings.Contains(err.Error(), "pod_namespaces") != foreign {
					t.Errorf("got %v", err)
				}
			})
		})
	}
}

// TestEvictionReadsAgain: a Pod that could not be read once does not end a drain, neither behind a
// conflict nor while the Pod goes. A right that is missing does.
func TestEvictionReadsAgain(t *testing.T) {
	t.Parallel()
	conflict := metav1.Status{Code: http.StatusConflict, Reason: metav1.StatusReasonConflict, Message: "the object has been modified"}
	for what, tc := range map[string]struct {
		conflicts []metav1.Status
		unread    metav1.Status
		ends      bool
	}{
		"conflict, timeout":  {[]metav1.Status{conflict}, metav1.Status{Code: http.StatusGatewayTimeout, Reason: metav1.StatusReasonTimeout}, false},
		"conflict, too busy": {[]metav1.Status{conflict}, metav1.Status{Code: http.StatusTooManyRequests, Reason: metav1.StatusReasonTooManyRequests}, false},
		"conflict, no right": {[]metav1.Status{conflict}, metav1.Status{Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden}, true},
		"evicted, timeout":   {nil, metav1.Status{Code: http.StatusGatewayTimeout, Reason: metav1.StatusReasonTimeout}, false},
		"evicted, no right":  {nil, metav1.Status{Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden}, true},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			eachCluster(t, func(t *testing.T, c *cluster) {
				c.addNamespace(t)
				o := c.options(t)
				evictions, _ := answering("/eviction", tc.conflicts...)
				reads, asked := answering("/pods/runner", tc.unread)
				o.Wrap = func(next http.RoundTripper) http.RoundTripper { return reads(evictions(next)) }
				client, node := c.client(t, o), c.addNode(t, name(t, "mac"), "")
				c.addPod(t, node.Name, "runner", owned("ReplicaSet", "runner"))
				c.phase(t, "runner", corev1.PodRunning, "")
				c.kubelet(t)
				var said podReports
				err := client.EvictPods(t.Context(), node, time.Minute, false, said.add)
				if (err != nil) != tc.ends || asked.Load() == 0 {
					t.Errorf("after %d looks: %v; said %q", asked.Load(), err, said.events)
				}
				if left := podsOf(t, client); !tc.ends && len(left) != 0 {
					t.Errorf("left %+v", left)
				}
			})
		})
	}
}

// TestEvictionThrottled does not blame a disruption budget if the server asks every client to wait.
func TestEvictionThrottled(t *testing.T) {
	t.Parallel()
	eachCluster(t, func(t *testing.T, c *cluster) {
		c.addNamespace(t)
		o := c.options(t)
		busy := metav1.Status{Code: http.StatusTooManyRequests, Reason: metav1.StatusReasonTooManyRequests, Message: "too many requests, please try again later"}
		o.Wrap, _ = answering("/eviction", busy)
		client, node := c.client(t, o), c.addNode(t, name(t, "mac"), "")
		c.addPod(t, node.Name, "runner", owned("ReplicaSet", "runner"))
		c.phase(t, "runner", corev1.PodRunning, "")
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		said := podReports{first: func(string) { cancel() }}
		err := client.EvictPods(ctx, node, time.Hour, false, said.add)
		if !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "too busy") || strings.Contains(err.Error(), "budget") {
			t.Errorf("it says: %v", err)
		}
		if len(said.events) != 1 || strings.Contains(said.events[0], "budget") {
			t.Errorf("said %q", said.events)
		}
	})
}

// TestEvictionFails: a server that fails once does not leave a Node half drained. What never passes ends the drain.
func TestEvictionFails(t *testing.T) {
	t.Parallel()
	for what, tc := range map[string]struct {
		answer metav1.Status
		ends   bool
	}{
		"a webhook that fails":    {metav1.Status{Code: http.StatusInternalServerError, Reason: metav1.StatusReasonInternalError, Message: "failed calling webhook"}, false},
		"unavailable":             {metav1.Status{Code: http.StatusServiceUnavailable, Reason: metav1.StatusReasonServiceUnavailable}, false},
		"two disruption budgets":  {metav1.Status{Code: http.StatusInternalServerError, Message: "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."}, true},
		"a permission is missing": {metav1.Status{Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden}, true},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			eachCluster(t, func(t *testing.T, c *cluster) {
				c.addNamespace(t)
				o := c.options(t)
				var asked *atomic.Int32
				o.Wrap, asked = answering("/eviction", tc.answer)
				client, node := c.client(t, o), c.addNode(t, name(t, "mac"), "")
				c.addPod(t, node.Name, "runner", owned("ReplicaSet", "runner"))
				c.phase(t, "runner", corev1.PodRunning, "")
				c.kubelet(t)
				var said podReports
				err := client.EvictPods(t.Context(), node, time.Minute, false, said.add)
				if (err != nil) != tc.ends || asked.Load() == 0 || !tc.ends && len(podsOf(t, client)) != 0 {
					t.Errorf("after %d evictions: %v; said %q", asked.Load(), err, said.events)
				}
			})
		})
	}
}
