// Package kubernetes sees the cluster whose Nodes the hosts are. It is the only
// package that knows client-go.
package kubernetes

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/macfleet/macfleet/fleet/inventory"
)

// timeout bounds each request, its answer included.
const timeout = 30 * time.Second

// Options say how the cluster is reached.
type Options struct {
	Context string // of the kubeconfig; empty = its current one
	Wrap    func(http.RoundTripper) http.RoundTripper
	// URL and Token stand in for the user's kubeconfig, both or none.
	URL, Token string
}

// Client sees one cluster.
type Client struct {
	api  kubernetes.Interface
	http *http.Client
}

// New returns a client with the kubeconfig that kubectl's users know: KUBECONFIG
// or ~/.kube/config.
func New(o Options) (*Client, error) {
	config, err := restConfig(o)
	if err != nil {
		return nil, err
	}
	config.Wrap(o.Wrap)
	config.Timeout = timeout
	// The client's own limit of 5 requests a second is made for controllers.
	config.QPS, config.Burst = 50, 100
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("kubernetes client: %w", err)
	}
	api, err := kubernetes.NewForConfigAndClient(config, client)
	if err != nil {
		return nil, fmt.Errorf("kubernetes client: %w", err)
	}
	return &Client{api: api, http: client}, nil
}

// Close lets go of idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

func restConfig(o Options) (*rest.Config, error) {
	if o.URL != "" {
		return &rest.Config{Host: o.URL, BearerToken: o.Token}, nil
	}
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	loader := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{CurrentContext: o.Context})
	raw, err := loader.RawConfig()
	if err != nil {
		return nil, fmt.Errorf("read kubeconfig %s: %w", strings.Join(rules.GetLoadingPrecedence(), ", "), err)
	}
	if _, ok := raw.Contexts[o.Context]; o.Context != "" && !ok {
		known := slices.Sorted(maps.Keys(raw.Contexts))
		return nil, fmt.Errorf("kubeconfig %s has no context %q; it has: %s",
			strings.Join(rules.GetLoadingPrecedence(), ", "), o.Context, cmp.Or(strings.Join(known, ", "), "none"))
	}
	config, err := loader.ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("kubeconfig %s: %w", strings.Join(rules.GetLoadingPrecedence(), ", "), err)
	}
	return config, nil
}

// UID returns the uid of the kube-system namespace, by which a cluster is told
// from all others.
func (c *Client) UID(ctx context.Context) (string, error) {
	ns, err := c.api.CoreV1().Namespaces().Get(ctx, metav1.NamespaceSystem, metav1.GetOptions{})
	if err != nil {
		return "", fmt.Errorf("read the uid of the cluster: %w", explain(err))
	}
	return string(ns.UID), nil
}

// Nodes returns all Nodes of the cluster, ordered by name.
func (c *Client) Nodes(ctx context.Context) ([]inventory.Node, error) {
	list, err := c.api.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("list the nodes: %w", explain(err))
	}
	out := make([]inventory.Node, 0, len(list.Items))
	for i := range list.Items {
		out = append(out, toNode(&list.Items[i]))
	}
	slices.SortFunc(out, func(a, b inventory.Node) int { return cmp.Compare(a.Name, b.Name) })
	return out, nil
}

// Secret returns one key of a Secret.
func (c *Client) Secret(ctx context.Context, namespace, name, key string) (string, error) {
	s, err := c.api.CoreV1().Secrets(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return "", fmt.Errorf("read secret %s/%s: %w", namespace, name, explain(err))
	}
	value, ok := s.Data[key]
	if !ok {
		return "", fmt.Errorf("secret %s/%s has no key %q; it has: %s", namespace, name, key,
			strings.Join(slices.Sorted(maps.Keys(s.Data)), ", "))
	}
	return string(value), nil
}

func toNode(n *corev1.Node) inventory.Node {
	out := inventory.Node{Name: n.Name, ProviderID: n.Spec.ProviderID, Cordoned: n.Spec.Unschedulable, Ready: inventory.ReadyUnknown}
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady {
			out.Ready = inventory.Readiness(c.Status)
			if c.Status != corev1.ConditionTrue {
				out.Why = cmp.Or(c.Message, c.Reason)
			}
		}
	}
	return out
}

// explain adds what a person can do to the errors whose cause is known.
func explain(err error) error {
	switch {
	case apierrors.IsUnauthorized(err):
		return fmt.Errorf("%w; the credentials of the kubeconfig's user are refused: renew them", err)
	case apierrors.IsForbidden(err):
		return fmt.Errorf("%w; the kubeconfig's user lacks this right", err)
	}
	return err
}
