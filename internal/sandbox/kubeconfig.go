package sandbox

import (
	"cmp"
	"encoding/base64"
	"fmt"
	"sync"
)

// secured is a second listener of the cluster's API, opened on demand: kubectl sends its token only
// over TLS.
type secured struct {
	mu sync.Mutex
	*endpoint
}

func (s *secured) close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.endpoint == nil {
		return nil
	}
	return s.endpoint.close()
}

// Kubeconfig returns a kubeconfig with the administrator's rights. This process serves the cluster
// until the world is closed.
func (w *World) Kubeconfig() ([]byte, error) {
	certificate, authority, err := w.kube.Certificate()
	if err != nil {
		return nil, err
	}
	w.secure.mu.Lock()
	defer w.secure.mu.Unlock()
	if w.secure.endpoint == nil {
		if w.secure.endpoint, err = listenTLS(w.log.handler("kubernetes", &front{world: w}), certificate); err != nil {
			return nil, err
		}
	}
	name := fmt.Sprintf("%q", cmp.Or(w.settings.KubeContext, "sandbox"))
	return fmt.Appendf(nil, `apiVersion: v1
kind: Config
clusters:
- name: sandbox
  cluster:
    server: %s
    certificate-authority-data: %s
contexts:
- name: %s
  context:
    cluster: sandbox
    user: sandbox
current-context: %s
users:
- name: sandbox
  user:
    token: %s
`, w.secure.url(), base64.StdEncoding.EncodeToString([]byte(authority)), name, name, w.settings.KubernetesToken), nil
}
