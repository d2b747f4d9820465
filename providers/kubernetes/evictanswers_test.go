package kubernetes_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/providers/kubernetes"
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

// oneRunner is a simulated cluster with a Node on which one Pod runs, and its client. What these tests vary are
// answers in place of the cluster's own, so that a real server would show nothing else.
func oneRunner(t *testing.T, change func(*cluster, *kubernetes.Options)) (*cluster, *kubernetes.Client, inventory.Node) {
	t.Helper()
	c := sandboxCluster(t)
	c.addNamespace(t)
	o := c.options(t)
	change(c, &o)
	client, node := c.client(t, o), c.addNode(t, name(t, "mac"), "")
	c.addPod(t, node.Name, "runner", owned("ReplicaSet", "runner"))
	c.phase(t, "runner", corev1.PodRunning, "")
	return c, client, node
}

// TestEvictionAnswers: what passes does not leave a Node half drained, and a missing right ends the drain. A conflict does not show
// that the Pod is gone: it is read.
func TestEvictionAnswers(t *testing.T) {
	t.Parallel()
	conflict := metav1.Status{Code: http.StatusConflict, Reason: metav1.StatusReasonConflict, Message: "the object has been modified"}
	timeout := metav1.Status{Code: http.StatusGatewayTimeout, Reason: metav1.StatusReasonTimeout}
	busy := metav1.Status{Code: http.StatusTooManyRequests, Reason: metav1.StatusReasonTooManyRequests}
	denied := metav1.Status{Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden}
	webhook := metav1.Status{Code: http.StatusInternalServerError, Reason: metav1.StatusReasonInternalError, Message: "failed calling webhook"}
	down := metav1.Status{Code: http.StatusServiceUnavailable, Reason: metav1.StatusReasonServiceUnavailable}
	budgets := metav1.Status{Code: http.StatusInternalServerError,
		Message: "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."}
	leaving := metav1.Status{Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden,
		Details: &metav1.StatusDetails{Causes: []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}}}
	type answers = []metav1.Status
	for what, tc := range map[string]struct {
		evictions, reads answers
		deleted          bool // someone deletes the Pod between the look and its eviction
		replaced         bool // the same, and the name is already another Pod's, on another Node
		arriving         bool // each eviction is followed by a new Pod
		ends             bool // the drain, with an error
		said             string
	}{
		"conflict":                   {evictions: answers{conflict}, said: "evicted gone"},
		"conflict, being deleted":    {evictions: answers{conflict}, deleted: true, said: "gone"},
		"conflict, timeout":          {evictions: answers{conflict}, reads: answers{timeout}, said: "evicted gone"},
		"conflict, too busy":         {evictions: answers{conflict}, reads: answers{busy}, said: "evicted gone"},
		"conflict, no right":         {evictions: answers{conflict}, reads: answers{denied}, ends: true},
		"timeout once it is evicted": {reads: answers{timeout}, said: "evicted gone"},
		"no right once it is":        {reads: answers{denied}, ends: true, said: "evicted"},
		"a webhook that fails":       {evictions: answers{webhook}, said: "held evicted gone"},
		"unavailable":                {evictions: answers{down}, said: "held evicted gone"},
		"two disruption budgets":     {evictions: answers{budgets}, ends: true},
		"its namespace goes":         {evictions: answers{leaving}, reads: answers{denied}, ends: true},
		"no right":                   {evictions: answers{denied}, ends: true},
		"another Pod of that name":   {replaced: true, said: "gone"},
		"new Pods keep arriving":     {arriving: true, ends: true, said: strings.TrimSpace(strings.Repeat("evicted gone ", 3))},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			evictions, asked := answering("/eviction", tc.evictions...)
			reads, read := answering("/pods/runner", tc.reads...)
			c, client, node := oneRunner(t, func(c *cluster, o *kubernetes.Options) {
				o.Wrap = func(next http.RoundTripper) http.RoundTripper {
					answered := reads(evictions(next))
					return roundTripper(func(r *http.Request) (*http.Response, error) {
						eviction := strings.HasSuffix(r.URL.Path, "/eviction")
						switch {
						case tc.deleted && eviction && asked.Load() == 0:
							c.deletePod(t, "runner", 30)
						case tc.replaced && eviction && asked.Load() == 0:
							c.deletePod(t, "runner", 0)
							c.addPod(t, "linux", "runner", owned("ReplicaSet", "runner"))
						case tc.arriving && eviction:
							c.addPod(t, name(t, "mac"), fmt.Sprint("next-", asked.Load()), owned("ReplicaSet", "runner"))
						}
						return answered.RoundTrip(r)
					})
				}
			})
			c.kubelet(t)
			var said podReports
			err := client.EvictPods(t.Context(), node, 20*time.Second, false, said.add)
			if (err != nil) != tc.ends || asked.Load() == 0 || tc.deleted && asked.Load() != 1 || len(tc.reads) > 0 && read.Load() == 0 {
				t.Errorf("after %d evictions and %d reads: %v", asked.Load(), read.Load(), err)
			}
			var events []string
			for _, e := range said.events {
				events = append(events, strings.Fields(e)[1])
			}
			left, err := c.admin.CoreV1().Pods(ns(t)).List(t.Context(), metav1.ListOptions{})
			if err != nil || strings.Join(events, " ") != tc.said || !tc.ends && (len(left.Items) != 0) != tc.replaced {
				t.Errorf("said %q, want %q; left %+v, %v", said.events, tc.said, left.Items, err)
			}
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
			_, client, node := oneRunner(t, func(_ *cluster, o *kubernetes.Options) {
				if o.PodNamespaces = nil; !foreign {
					o.PodNamespaces = []string{ns(t)}
				}
			})
			err := client.EvictPods(t.Context(), node, 1500*time.Millisecond, false, unreported)
			if !errors.Is(err, context.DeadlineExceeded) || strings.Contains(err.Error(), "pod_namespaces") != foreign {
				t.Errorf("got %v", err)
			}
		})
	}
}

// TestEvictionThrottled does not blame a disruption budget if the server asks every client to wait.
func TestEvictionThrottled(t *testing.T) {
	t.Parallel()
	_, client, node := oneRunner(t, func(_ *cluster, o *kubernetes.Options) {
		o.Wrap, _ = answering("/eviction", metav1.Status{Code: http.StatusTooManyRequests, Reason: metav1.StatusReasonTooManyRequests,
			Message: "too many requests, please try again later"})
	})
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
}
