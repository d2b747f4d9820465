package mac

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/macfleet/macfleet/internal/sandbox/agent"
)

// Outside is the world around a machine. Each part may be missing: nothing can be downloaded then,
// nobody sees kubelets, and no Pod is known.
type Outside struct {
	// Download opens what is at an https address. The error is ErrNoHost where nobody has that
	// name, and fs.ErrNotExist where the host answers that there is no such thing.
	Download func(address string) (io.ReadSeekCloser, error)
	// Kubelets sees the kubelets of the machine whenever one starts or ends: those that run, and
	// those that have ended since the last start of one. It is called with the machine locked and
	// must not come back to it. Their server is not filled in.
	Kubelets func([]agent.Kubelet) error
	// Pods gives the Pods of a kubelet's Node. It fails where the cluster refuses the kubelet.
	Pods func(agent.Kubelet) ([]agent.Pod, error)
	// MayHavePods reports, at no cost, whether Pods is worth asking.
	MayHavePods func() bool
}

// ErrNoHost reports that a name leads to no host.
var ErrNoHost = errors.New("could not resolve host")

// Connect returns the machine the world around it. It is called before anything else.
func (m *Machine) Connect(to Outside) { m.outside = to }

// Announce tells the world which kubelets run, where something has changed while nobody was there
// to hear it.
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
