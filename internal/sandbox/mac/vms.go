package mac

import (
	"fmt"
	"slices"
	"time"

	"github.com/macfleet/macfleet/internal/sandbox/agent"
)

// VM is a virtual machine of the login user.
type VM struct {
	Name    string
	Running bool
}

// Push is an upload of a virtual machine to a registry.
type Push struct {
	VM, Ref string
	Ended   bool
	Failure string // "" = it has succeeded, if it has ended
}

// Paths of a fleet's tart.
const (
	fleetTart = "/usr/local/lib" + tartInBundle
	pushTime  = 6 * time.Minute // longer than the time between two collections of the kubelet
)

// asLogin runs f as the login user, whose tart keeps everything in the home folder.
func (m *Machine) asLogin(what string, f func(*visit, tartCall) error) error {
	err := m.asRoot(func(v *visit, p *proc) error {
		own := *p
		own.user = v.session.loginUser()
		own.env = loginEnviron(own.user)
		return f(v, tartCall{&own, fleetTart, tartHome(&own)})
	})
	if err != nil {
		return fmt.Errorf("%s on the machine in %s: %w", what, m.dir, err)
	}
	return nil
}

// VMs returns the virtual machines of the login user, by name.
func (m *Machine) VMs() (all []VM, err error) {
	err = m.asLogin("list the virtual machines", func(v *visit, c tartCall) error {
		local, err := c.listed(v, "local")
		for _, one := range local {
			all = append(all, VM{one.Name, one.Running})
		}
		return err
	})
	return all, err
}

// AddVM creates a virtual machine of the login user that does not run.
func (m *Machine) AddVM(name string) error {
	return m.asLogin("make a virtual machine", func(v *visit, c tartCall) error { return c.make(v, name, newVM()) })
}

// StartVM creates a virtual machine of the login user, if there is none, and starts it as a kubelet
// does. It fails like tart: without tart, without the user's session, with two others running.
func (m *Machine) StartVM(name string) error { return m.startVM(name, nil) }

// StartPod is StartVM for a Pod of the cluster: its virtual machine is removed with the Pod, at the
// next read of the machine while its kubelet runs.
func (m *Machine) StartPod(pod agent.Pod) error {
	return m.startVM(pod.VM(), &podOf{pod.Namespace, pod.Name})
}

func (m *Machine) startVM(name string, pod *podOf) error {
	return m.asLogin("start a virtual machine", func(v *visit, c tartCall) error {
		return v.startVM(c, name, pod)
	})
}

func (v *visit) startVM(c tartCall, name string, pod *podOf) error {
	if err := v.entitled(fleetTart); err != nil {
		return err
	}
	if _, running, err := v.running(c.home, name); running || err != nil {
		return err
	}
	if !v.exists(c.folder(name)) {
		if err := c.make(v, name, newVM()); err != nil {
			return err
		}
	}
	_, err := v.startGuest(c.user, c.home, name, []string{fleetTart, "run", name, "--no-graphics"}, pod)
	return err
}

// RemoveVM stops a virtual machine of the login user and deletes it, if there is one.
func (m *Machine) RemoveVM(name string) error {
	return m.asLogin("delete a virtual machine", func(v *visit, c tartCall) error { return v.removeVM(c.user, c.home, name) })
}

func (v *visit) removeVM(who user, home, name string) error {
	err := v.endGuests(func(g guest) bool { return g.runs() && g.VM == name && g.Home == home })
	if err != nil {
		return err
	}
	n, err := v.find(who, "/", home+"/vms/"+name, true)
	if missing(err) {
		return nil
	}
	if err != nil {
		return err
	}
	return v.removeFiles(who, n)
}

// removeFiles deletes a virtual machine, even during a push. A push that has finished reading it
// succeeds.
func (v *visit) removeFiles(who user, n node) error {
	if err := v.changeGuests(func(all []guest) []guest { return all }); err != nil {
		return err
	}
	return v.removeAll(who, n)
}

// StartPush pushes a virtual machine of the login user, which is created if there is none. It takes
// six minutes of the machine's clock.
func (m *Machine) StartPush(name, ref string) error {
	return m.asLogin("push a virtual machine", func(v *visit, c tartCall) error {
		if !v.exists(c.folder(name)) {
			if err := c.make(v, name, newVM()); err != nil {
				return err
			}
		}
		now := v.session.now()
		return v.addGuest(&guest{VM: name, Home: c.home, UID: c.user.uid, Started: now, Args: []string{fleetTart, "push", name, ref}, Ref: ref, Ends: now.Add(pushTime)})
	})
}

// EndPushes ends the pushes to a registry without a result.
func (m *Machine) EndPushes(ref string) error {
	return m.asLogin("end a push", func(v *visit, _ tartCall) error {
		return v.endGuests(func(g guest) bool { return g.Ref == ref })
	})
}

// Pushes returns the running and ended pushes since the last boot, in the order of their start.
func (m *Machine) Pushes() (all []Push, err error) {
	err = m.asRoot(func(v *visit, _ *proc) error {
		guests, err := v.guests()
		for _, g := range slices.DeleteFunc(guests, guest.runs) {
			all = append(all, Push{g.VM, g.Ref, g.ResultRead, g.Failure})
		}
		return err
	})
	return all, err
}
