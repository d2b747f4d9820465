package kubernetes

import (
	"context"
	"fmt"
	"os"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/macfleet/macfleet/internal/secret"
)

// IssueToken issues a token of macfleet's own account that ends after ttl, which
// the cluster may shorten: the time it returns is the cluster's. A cluster
// refuses less than ten minutes.
func (c *Client) IssueToken(ctx context.Context, ttl time.Duration) (secret.Value, time.Time, error) {
	seconds := int64(ttl / time.Second)
	answer, err := c.api.CoreV1().ServiceAccounts(c.options.Namespace).CreateToken(ctx, ownName,
		&authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &seconds}}, metav1.CreateOptions{})
	if err != nil {
		return secret.Value{}, time.Time{}, fmt.Errorf("issue a token of service account %s/%s: %w", c.options.Namespace, ownName, explain(err))
	}
	token, err := secret.New(answer.Status.Token)
	if err != nil {
		return secret.Value{}, time.Time{}, fmt.Errorf("token of service account %s/%s: %w", c.options.Namespace, ownName, err)
	}
	return token, answer.Status.ExpirationTimestamp.UTC(), nil
}

// Kubeconfig renders a kubeconfig of macfleet's own account with a token, for CI.
// The address and the authority are those by which this client reaches the
// cluster; the context bears the configuration's name for it.
func (c *Client) Kubeconfig(token secret.Value) (secret.Value, error) {
	ca := c.config.CAData
	if len(ca) == 0 && c.config.CAFile != "" {
		var err error
		if ca, err = os.ReadFile(c.config.CAFile); err != nil {
			return secret.Value{}, fmt.Errorf("read the cluster's certificate authority: %w", err)
		}
	}
	name := c.options.Context
	if name == "" {
		name = "macfleet"
	}
	return secret.New(kubeconfig(name, ownName, c.config.Host, string(ca), token))
}

// kubeconfig renders a kubeconfig with one cluster, one user and one context.
func kubeconfig(cluster, user, server, ca string, token secret.Value) string {
	config := clientcmdapi.NewConfig()
	config.Clusters[cluster] = &clientcmdapi.Cluster{Server: server, CertificateAuthorityData: []byte(ca)}
	config.AuthInfos[user] = &clientcmdapi.AuthInfo{Token: token.Reveal()}
	config.Contexts[cluster] = &clientcmdapi.Context{Cluster: cluster, AuthInfo: user}
	config.CurrentContext = cluster
	// Writing plain values into memory cannot fail.
	text, _ := clientcmd.Write(*config)
	return string(text)
}
