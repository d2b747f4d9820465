package kubernetes

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/fleet/inventory"
)

// Where a cluster says how it is reached, and by whom its certificate is signed.
const (
	clusterInfo = "cluster-info"     // in kube-public, by kubeadm
	rootCA      = "kube-root-ca.crt" // in every namespace, by kube-controller-manager
)

// join says how hosts reach the cluster: by the address of the configuration, or
// else by the one the cluster gives out itself.
func (c *Client) join(ctx context.Context) (inventory.Join, error) {
	info, err := c.publicInfo(ctx)
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsForbidden(err) {
		return inventory.Join{}, fmt.Errorf("read configmap %s/%s: %w", metav1.NamespacePublic, clusterInfo, explain(err))
	}
	out := info
	if c.options.APIServer != "" { // what the cluster says of another address applies only to that one
		out = inventory.Join{Server: c.options.APIServer, CA: info.CA}
	}
	out.CA, out.TLSServerName = cmp.Or(c.options.APIServerCA, out.CA), cmp.Or(c.options.TLSServerName, out.TLSServerName)
	out.ProxyURL = cmp.Or(c.options.ProxyURL, out.ProxyURL)
	if out.Server == "" {
		why := "it names no address"
		if err != nil {
			why = err.Error()
		}
		return inventory.Join{}, fmt.Errorf("configmap %s/%s does not give the address by which hosts reach the cluster (%s); fix: set api_server in the kubernetes block",
			metav1.NamespacePublic, clusterInfo, why)
	}
	if err := reachable(out.Server); err != nil {
		return inventory.Join{}, fmt.Errorf("hosts cannot use the cluster's address %q: %w; fix: set api_server in the kubernetes block", out.Server, err)
	}
	if out.CA == "" {
		if out.CA, err = c.rootCA(ctx); err != nil {
			return inventory.Join{}, err
		}
	}
	return out, nil
}

// publicInfo reads the kubeconfig without a user that kubeadm publishes.
func (c *Client) publicInfo(ctx context.Context) (inventory.Join, error) {
	m, err := c.api.CoreV1().ConfigMaps(metav1.NamespacePublic).Get(ctx, clusterInfo, metav1.GetOptions{})
	if err != nil {
		return inventory.Join{}, err
	}
	config, err := clientcmd.Load([]byte(m.Data["kubeconfig"]))
	if err != nil {
		return inventory.Join{}, fmt.Errorf("its kubeconfig: %w", err)
	}
	for _, name := range sortedKeys(config.Clusters) {
		known := config.Clusters[name]
		return inventory.Join{Server: known.Server, CA: string(known.CertificateAuthorityData), TLSServerName: known.TLSServerName,
			ProxyURL: known.ProxyURL}, nil
	}
	return inventory.Join{}, nil
}

// rootCA reads the authority that every Pod is given.
func (c *Client) rootCA(ctx context.Context) (string, error) {
	m, err := c.api.CoreV1().ConfigMaps(metav1.NamespacePublic).Get(ctx, rootCA, metav1.GetOptions{})
	if err != nil {
		return "", fmt.Errorf("read the cluster's certificate authority, configmap %s/%s: %w", metav1.NamespacePublic, rootCA, explain(err))
	}
	ca := m.Data["ca.crt"]
	if ca == "" {
		return "", fmt.Errorf("configmap %s/%s has no ca.crt", metav1.NamespacePublic, rootCA)
	}
	return ca, nil
}

// reachable refuses an address that means the host itself, which a cluster's
// stub endpoints and tunnels have.
func reachable(server string) error {
	u, err := url.Parse(server)
	if err != nil {
		return err
	}
	if u.Scheme != "https" || u.Hostname() == "" {
		return errors.New("it is not an https URL")
	}
	if why := fleet.AddressFault(u.Hostname()); why != "" {
		return errors.New(why)
	}
	return nil
}
