// Package kubernetes sees and changes the cluster whose Nodes the hosts are. It
// is the only package that knows client-go.
package kubernetes

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	_ "k8s.io/client-go/plugin/pkg/client/auth" // kubeconfigs from before credential plugins: auth-provider
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"

	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/internal/secret"
	"github.com/macfleet/macfleet/plan"
	"github.com/macfleet/macfleet/providers/transport"
)

const (
	// timeout bounds each request, its answer included.
	timeout = 30 * time.Second
	// pageSize is how many objects one answer holds at most: as many Nodes as a
	// large fleet has, and few enough Pods that a page of them is a few megabytes.
	pageSize = 500
)

// atOnce is how often a change is tried that met another one.
var atOnce = wait.Backoff{Steps: 5}

// Options say how the cluster is reached, and what of it is macfleet's.
type Options struct {
	Context string // of the kubeconfig; empty = its current one
	Server  string // what the cluster's address is called; empty = the address
	Wrap    func(http.RoundTripper) http.RoundTripper
	// URL and Token stand in for the user's kubeconfig, both or none; CA (PEM) goes
	// with an https URL.
	URL, Token string
	CA         []byte

	Namespace string // macfleet's own; empty = macfleet
	// AgentNamespace holds the hosts' accounts and nothing else, as what agents may do
	// in some namespaces is given to all of its accounts; empty = Namespace and -agents.
	AgentNamespace string
	// PodNamespaces are where Pods for the hosts run: agents read Secrets only
	// there. Empty = default.
	PodNamespaces []string
	LabelPrefix   string // of labels and annotations; empty = macfleet.dev
	Owner         string // whose the hosts' identities are: CONFIGURATION-ENVIRONMENT
	APIServer     string // https URL as hosts reach the cluster; empty = as kube-public/cluster-info says
	// How hosts verify and reach that address; empty = as the cluster says. The CA is PEM.
	APIServerCA, TLSServerName, ProxyURL string
	CAPI                                 *CAPI // nil: the Cluster API is not connected by macfleet

	// TokenWait bounds how long the cluster has for filling a token Secret; zero =
	// 30 s.
	TokenWait time.Duration
	// Now is this machine's clock; nil = time.Now.
	Now func() time.Time
}

// Client sees and changes one cluster. It is safe for use by several goroutines.
type Client struct {
	options Options
	context string // of the kubeconfig; empty: the credentials came from elsewhere
	config  *rest.Config
	proxy   string // URL of the kubeconfig's proxy; empty: none
	http    *http.Client
	clock   *clock

	api     kubernetes.Interface
	meta    metadata.Interface // reads no more than an object's metadata
	dynamic dynamic.Interface
}

// New returns a client with the kubeconfig that kubectl's users know: KUBECONFIG
// or ~/.kube/config.
func New(o Options) (*Client, error) {
	o.Namespace, o.LabelPrefix = cmp.Or(o.Namespace, "macfleet"), cmp.Or(o.LabelPrefix, "macfleet.dev")
	o.TokenWait = cmp.Or(o.TokenWait, 30*time.Second)
	o.AgentNamespace = cmp.Or(o.AgentNamespace, o.Namespace+"-agents")
	if len(o.PodNamespaces) == 0 {
		o.PodNamespaces = []string{metav1.NamespaceDefault}
	}
	quiet()
	if o.Now == nil {
		o.Now = time.Now
	}
	config, current, proxy, err := restConfig(o)
	if err != nil {
		return nil, err
	}
	c := &Client{options: o, context: cmp.Or(o.Context, current), config: config, proxy: proxy, clock: &clock{local: o.Now}}
	config.Wrap(o.Wrap)
	config.Wrap(c.clock.wrap)
	config.Timeout = timeout
	config.WarningHandler = rest.NoWarnings{}
	// Protobuf costs a third of JSON on both sides; a server that lacks it answers
	// in JSON.
	config.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	// The client's own limit of 5 requests a second is made for controllers; the
	// server shares itself out among its clients.
	config.QPS, config.Burst = 500, 500
	if c.http, err = rest.HTTPClientFor(config); err != nil {
		return nil, fmt.Errorf("kubernetes client: %w", err)
	}
	var errs [3]error // client-go's clients share one of HTTP
	c.api, errs[0] = kubernetes.NewForConfigAndClient(config, c.http)
	c.meta, errs[1] = metadata.NewForConfigAndClient(metadata.ConfigFor(config), c.http)
	c.dynamic, errs[2] = dynamic.NewForConfigAndClient(config, c.http)
	if err := errors.Join(errs[:]...); err != nil {
		return nil, fmt.Errorf("kubernetes client: %w", err)
	}
	return c, nil
}

// quiet keeps client-go from writing to stderr by itself, for example when a
// request is cancelled: all that matters comes back as an error.
var quiet = sync.OnceFunc(func() { klog.SetLogger(logr.Discard()) })

// Close closes idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// label returns the name of one of macfleet's labels or annotations.
func (c *Client) label(name string) string { return c.options.LabelPrefix + "/" + name }

// restConfig returns how the cluster is reached, the kubeconfig's current context, and the proxy
// that its cluster names. In a Pod without a kubeconfig there is neither.
func restConfig(o Options) (config *rest.Config, current, proxy string, err error) {
	if o.URL != "" {
		return &rest.Config{Host: o.URL, BearerToken: o.Token, TLSClientConfig: rest.TLSClientConfig{CAData: o.CA}}, "", "", nil
	}
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	loader := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{CurrentContext: o.Context})
	raw, err := loader.RawConfig()
	files := strings.Join(rules.GetLoadingPrecedence(), ", ")
	if err != nil {
		return nil, "", "", fmt.Errorf("read kubeconfig %s: %w", files, err)
	}
	if _, ok := raw.Contexts[o.Context]; o.Context != "" && !ok {
		known := cmp.Or(strings.Join(sortedKeys(raw.Contexts), ", "), "none")
		return nil, "", "", fmt.Errorf("kubeconfig %s has no context %q; it has: %s", files, o.Context, known)
	}
	config, err = loader.ClientConfig()
	if err != nil {
		return nil, "", "", fmt.Errorf("kubeconfig %s: %w", files, err)
	}
	if at := raw.Contexts[cmp.Or(o.Context, raw.CurrentContext)]; at != nil && raw.Clusters[at.Cluster] != nil {
		proxy = raw.Clusters[at.Cluster].ProxyURL
	}
	return config, raw.CurrentContext, proxy, nil
}

// ID says which cluster it is: by the uid of its namespace kube-system, which no two
// clusters share.
func (c *Client) ID(ctx context.Context) (inventory.ClusterID, error) {
	out := inventory.ClusterID{Context: c.context, Server: cmp.Or(c.options.Server, c.config.Host)}
	ns, err := c.api.CoreV1().Namespaces().Get(ctx, metav1.NamespaceSystem, metav1.GetOptions{})
	if err != nil {
		return out, fmt.Errorf("identify cluster %s: %w", out.Name(), explain(err))
	}
	out.UID = string(ns.UID)
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
		return "", fmt.Errorf("secret %s/%s %w %q; it has: %s", namespace, name, errNoKey, key, strings.Join(sortedKeys(s.Data), ", "))
	}
	return string(value), nil
}

// wrap says of the error of a function what that was doing.
func wrap(err *error, format string, args ...any) {
	if *err != nil {
		*err = fmt.Errorf(format+": %w", append(args, *err)...)
	}
}

var codeKubeconfigRejected = plan.NewCode("kubeconfig-rejected", plan.NotDrift, "the cluster rejects the credentials of the kubeconfig: they were revoked or have expired",
	"renew the kubeconfig's credentials, then run the command again")

// explain adds what a person can do to the errors whose cause is known.
func explain(err error) error {
	switch {
	case apierrors.IsUnauthorized(err):
		return fmt.Errorf("%w: %w", err, codeKubeconfigRejected.Trouble("the API server rejects the kubeconfig's credentials"))
	case apierrors.IsForbidden(err) && ownDenied(err):
		return fmt.Errorf("%w; macfleet's own account lacks this permission, for example after an update of macfleet; fix: macfleet init cluster, as a cluster administrator", err)
	case apierrors.IsForbidden(err):
		return fmt.Errorf("%w; the kubeconfig's user lacks this permission", err)
	}
	return err
}

// ownDenied reports whether a right was denied to macfleet's own account, whose rights init cluster gives.
func ownDenied(err error) bool {
	text := err.Error()
	return strings.Contains(text, `User "system:serviceaccount:`) && strings.Contains(text, ":"+ownName+`" cannot `)
}

// IssueToken issues a token of macfleet's own account that ends after ttl, which
// the cluster may shorten: the time it returns is the cluster's. A cluster
// refuses less than ten minutes.
func (c *Client) IssueToken(ctx context.Context, ttl time.Duration) (token secret.Value, until time.Time, err error) {
	defer wrap(&err, "issue a token of service account %s/%s", c.options.Namespace, ownName)
	seconds := int64(ttl / time.Second)
	answer, err := c.api.CoreV1().ServiceAccounts(c.options.Namespace).CreateToken(ctx, ownName,
		&authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &seconds}}, metav1.CreateOptions{})
	if err != nil {
		return token, until, explain(err)
	}
	token, err = secret.New(answer.Status.Token)
	return token, answer.Status.ExpirationTimestamp.UTC(), err
}

// clock is the cluster's own, from the Date of its answers: what is "too long
// ago" must not hang on a laptop's clock. A Date is cut to whole seconds, so it
// never runs ahead.
type clock struct {
	local func() time.Time // this machine's
	last  atomic.Pointer[reading]
}

type reading struct{ server, local time.Time }

// now returns the cluster's time, and the local one while no answer had a
// Date.
func (c *clock) now() time.Time {
	r := c.last.Load()
	if r == nil {
		return c.local()
	}
	return r.server.Add(c.local().Sub(r.local))
}

// wrap reads the clock from each answer.
func (c *clock) wrap(next http.RoundTripper) http.RoundTripper {
	return transport.Around(next, func(r *http.Request) (*http.Response, error) {
		resp, err := next.RoundTrip(r)
		if err != nil {
			return resp, err
		}
		if date, err := http.ParseTime(resp.Header.Get("Date")); err == nil {
			c.last.Store(&reading{server: date, local: c.local()})
		}
		return resp, nil
	})
}

// Unanswered reports whether an error of the cluster says nothing about the
// request: the cluster was unreachable or could not answer. Not found and forbidden are
// answers.
func Unanswered(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return err != nil && !errors.Is(err, errNoKey)
	}
	code := status.Status().Code
	return code >= http.StatusInternalServerError || code == http.StatusTooManyRequests
}

// Missing reports whether a Secret, or the requested key of it, does not exist. Any
// other error says nothing about that.
func Missing(err error) bool { return apierrors.IsNotFound(err) || errors.Is(err, errNoKey) }

// errNoKey says that a Secret exists but lacks the key.
var errNoKey = errors.New("has no key")
