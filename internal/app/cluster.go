package app

import (
	"fmt"
	"net/http"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/providers/kubernetes"
	"github.com/macfleet/macfleet/providers/transport"
)

// openCluster opens the configuration's cluster, where it has one.
func (s *session) openCluster() error {
	if s.config.Kubernetes == nil {
		return nil
	}
	o := clusterOptions(s.config)
	o.Wrap = func(next http.RoundTripper) http.RoundTripper {
		return transport.Watch(s.cluster.Wrap(next), s.env.secrets.Learn)
	}
	if s.world != nil {
		if known := s.world.KubeContext(); o.Context != "" && known != "" && o.Context != known {
			return fmt.Errorf("the sandbox %s has no context %q; it has: %s", s.env.sandboxDir(), o.Context, known)
		}
		o.URL, o.Token = s.world.KubernetesURL(), s.world.KubernetesToken()
	}
	c, err := kubernetes.New(o)
	if err != nil {
		return err
	}
	s.kubernetes = c
	s.closers = append(s.closers, c.Close)
	return nil
}

// clusterOptions are what the configuration says of its cluster.
func clusterOptions(c *fleet.Config) kubernetes.Options {
	k := c.Kubernetes
	o := kubernetes.Options{Context: k.Context, Namespace: k.Namespace, LabelPrefix: k.LabelPrefix, Owner: c.Owner.String(), APIServer: k.APIServer,
		AgentNamespace: fleet.AgentNamespace(k.Namespace), PodNamespaces: k.PodNamespaces}
	if k.CAPI != nil {
		o.CAPI = &kubernetes.CAPI{Cluster: k.CAPI.Cluster, Namespace: k.CAPI.Namespace}
	}
	return o
}

// errNoCluster ends commands that are about the cluster of a configuration that
// has none.
func errNoCluster(command string) error {
	return fmt.Errorf("the configuration has no kubernetes block, so macfleet %s has no cluster to work on; docs/configuration.md says how to write one", command)
}
