package kubernetes

import (
	"cmp"
	"fmt"
	"net/url"
	"strings"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/internal/secret"
)

// Portable returns an error where another machine cannot reach the cluster as this one does, or could not
// tell whom it gives its token. A client that was handed an address, as in the sandbox, was meant to use it.
func (c *Client) Portable() error {
	if c.options.URL != "" {
		return nil
	}
	const elsewhere = "this kubeconfig does not work on other machines: "
	for _, way := range []struct{ what, text string }{{"address", c.config.Host}, {"proxy-url", c.proxy}} {
		if way.text == "" {
			continue
		}
		if !strings.Contains(way.text, "://") {
			way.text = "https://" + way.text
		}
		u, err := url.Parse(way.text)
		if err != nil {
			return fmt.Errorf(elsewhere+"its %s is not a URL; fix: correct it in the kubeconfig", way.what)
		}
		if why := fleet.AddressFault(u.Hostname()); why != "" {
			return fmt.Errorf(elsewhere+"its %s is %s, and %s; fix: use a kubeconfig with an address that CI can reach", way.what, u.Host, why)
		}
	}
	if c.config.Insecure {
		return fmt.Errorf(elsewhere+"it has insecure-skip-tls-verify, so any server at %s would get the token; fix: set certificate-authority-data instead", c.config.Host)
	}
	return nil
}

// Kubeconfig renders a kubeconfig of macfleet's own account with a token, for CI. It reaches the cluster
// as this client does: by its address, authority, server name and proxy. The context has the
// configuration's name for it.
func (c *Client) Kubeconfig(token secret.Value) (secret.Value, error) {
	with := rest.CopyConfig(c.config)
	if err := rest.LoadTLSFiles(with); err != nil {
		return secret.Value{}, fmt.Errorf("read the kubeconfig's certificates: %w", err)
	}
	return secret.New(kubeconfig(cmp.Or(c.options.Context, "macfleet"), ownName, clientcmdapi.Cluster{Server: with.Host,
		CertificateAuthorityData: with.CAData, TLSServerName: with.ServerName, ProxyURL: c.proxy}, token))
}

// kubeconfig renders a kubeconfig with one cluster, one user and one context.
func kubeconfig(cluster, user string, at clientcmdapi.Cluster, token secret.Value) string {
	config := clientcmdapi.NewConfig()
	config.Clusters[cluster] = &at
	config.AuthInfos[user] = &clientcmdapi.AuthInfo{Token: token.Reveal()}
	config.Contexts[cluster] = &clientcmdapi.Context{Cluster: cluster, AuthInfo: user}
	config.CurrentContext = cluster
	// Writing plain values into memory cannot fail.
	text, _ := clientcmd.Write(*config)
	return string(text)
}
