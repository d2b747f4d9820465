package mac

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/macfleet/macfleet/internal/sandbox/agent"
)

// Outside is the world around a machine. Each part may be missing: then downloads fail, kubelets are
// not reported, or Pods are unknown.
type Outside struct {
	// Download opens an https address. The error is ErrNoHost for an unknown host name, and
	// fs.ErrNotExist if the host answers 404.
	Download func(address string) (io.ReadSeekCloser, error)
	// Kubelets receives the kubelets of the machine whenever one starts or ends: the running ones, and
	// those that have ended since the last start of one. It is called with the machine locked and must
	// not call it. Their server is not filled in.
	Kubelets func([]agent.Kubelet) error
	// Pods returns the Pods of a kubelet's Node. It fails if the cluster refuses the kubelet.
	Pods func(agent.Kubelet) ([]agent.Pod, error)
	// Runners is GitHub's service for runners; nil = the machine does not reach it.
	Runners agent.Runners
	// Tailnets are the control servers that the machine reaches, by address; nil: it reaches none.
	Tailnets agent.Tailnets
	// MayHavePods is a fast check whether Pods can return any.
	MayHavePods func() bool
}

// ErrNoHost is returned for an unknown host name.
var ErrNoHost = errors.New("could not resolve host")

// Connect sets the world around the machine. It is called before anything else.
func (m *Machine) Connect(to Outside) { m.outside = to }

// world returns the world around the machine. What it says changes without the machine.
func (m *Machine) world() Outside {
	m.changing()
	return m.outside
}

// Announce reports the running kubelets to the world after changes that it did not receive.
func (m *Machine) Announce() error {
	data, err := m.remembers(kubeletsRecord)
	if data == nil || err != nil {
		return err
	}
	err = m.asRoot(func(v *visit, _ *proc) error {
		return v.changeLaunchd(func(*manager, time.Time) error { return nil })
	})
	if err != nil {
		return fmt.Errorf("announce the kubelets of the machine in %s: %w", m.dir, err)
	}
	return nil
}
