package kube

import (
	"errors"
	"fmt"
	"time"

	"github.com/macfleet/macfleet/internal/sandbox/agent"
)

// Object identifies an object of the cluster by its plural, namespace ("" if it has none) and name.
type Object struct{ Resource, Namespace, Name string }

// Read returns an object as it is stored, or nil if it is missing.
func (a *API) Read(o Object) (map[string]any, error) {
	var content map[string]any
	err := a.byHand(func(time.Time) error {
		found, err := a.state.get(o.Resource, o.Namespace, o.Name)
		if found != nil {
			content = found.Object
		}
		return err
	})
	return content, err
}

// Edit changes or creates an object, as a person does who edits its file: nothing is checked. change
// gets nil for a new object, and returns nil to delete it.
func (a *API) Edit(o Object, change func(map[string]any) map[string]any) error {
	return a.byHand(func(now time.Time) error {
		present, err := a.state.get(o.Resource, o.Namespace, o.Name)
		if err != nil {
			return err
		}
		var content map[string]any
		if present != nil {
			content = present.DeepCopy().Object
		}
		if content = change(content); content == nil {
			if present == nil {
				return nil
			}
			return a.state.remove(o.Resource, present)
		}
		plain, err := jsonObject(encoded(content))
		if err != nil {
			return err
		}
		wanted := newObject(a.kinds.named(o.Resource), o.Namespace, o.Name, now)
		merge(wanted.Object, plain)
		return a.state.put(o.Resource, wanted)
	})
}

// byHand changes the state between two requests, and lets the controllers catch up.
func (a *API) byHand(do func(now time.Time) error) error {
	_, err := a.locked(func(now time.Time) (answer, error) { return answer{}, do(now) })
	return err
}

// PutPod creates a Pod that is bound to a Node. An existing one is unchanged.
func (a *API) PutPod(node, namespace, name string) error {
	return a.byHand(func(now time.Time) error {
		if err := a.ensure(namespaces, newNamespace(a.kinds, namespace, now)); err != nil {
			return err
		}
		return a.ensure(pods, a.newPod(node, namespace, name, now))
	})
}

func (a *API) newPod(node, namespace, name string, now time.Time) *object {
	k := a.kinds.named(pods)
	pod := newObject(k, namespace, name, now)
	pod.Object["spec"] = map[string]any{
		"nodeName": node, "containers": []any{map[string]any{"name": "vm", "image": "registry.acme.dev/images/macos:latest"}},
	}
	k.fill(pod)
	return pod
}

// AcceptsKubelet reports whether the cluster accepts a kubelet's token with the rights for a Node.
func (a *API) AcceptsKubelet(k agent.Kubelet) (accepted bool, err error) {
	unlock, err := a.lock.Lock()
	if err != nil {
		return false, err
	}
	defer unlock()
	g, err := a.grants()
	if err != nil {
		return false, err
	}
	return a.judge(&member{Kubelet: k}, g, a.clock().UTC())
}

// ErrNoNode is returned for a server without a Node in the cluster.
var ErrNoNode = errors.New("the host has no Node: its kubelet has not registered")

// NodeOf returns the name of the Node that a server's kubelet registered last, or ErrNoNode. The Node
// itself may have been deleted.
func (a *API) NodeOf(serverID string) (node string, err error) {
	err = a.byHand(func(time.Time) error {
		k, _, err := a.newest(serverID)
		node = k.Node
		return err
	})
	return node, err
}

// newest returns the last registered run of a server's kubelet, with its recorded state.
func (a *API) newest(serverID string) (agent.Kubelet, *memory, error) {
	known, err := a.remembered()
	if err != nil {
		return agent.Kubelet{}, nil, err
	}
	all, err := a.kubelets()
	if err != nil {
		return agent.Kubelet{}, nil, err
	}
	found := agent.Kubelet{}
	for _, k := range all {
		if r := known.Runs[runKey(k)]; k.ServerID == serverID && r != nil && r.Registered {
			found = k
		}
	}
	if found.Node == "" {
		return found, known, ErrNoNode
	}
	return found, known, nil
}

// remember changes the recorded state of a server.
func (a *API) remember(serverID string, change func(k agent.Kubelet, known *memory)) error {
	return a.byHand(func(now time.Time) error {
		k, known, err := a.newest(serverID)
		if err != nil {
			return err
		}
		change(k, known)
		if err := a.state.keep(memoryFile, known); err != nil {
			return err
		}
		return a.state.trusting(func() error { return a.settleKubelets(now) })
	})
}

// Silence drops the heartbeats of the kubelet that runs on a server from since on; the zero time ends
// that. The heartbeats of a restarted kubelet arrive again.
func (a *API) Silence(serverID string, since time.Time) error {
	return a.remember(serverID, func(k agent.Kubelet, known *memory) { known.of(k).Silent = since })
}

// Silent reports whether the heartbeats of a server's last kubelet are dropped.
func (a *API) Silent(serverID string) (silent bool, err error) {
	err = a.byHand(func(time.Time) error {
		k, known, err := a.newest(serverID)
		silent = err == nil && !known.of(k).Silent.IsZero()
		return err
	})
	return silent, err
}

// PassOver makes a server's kubelets ignore terminated Pods even if they are deleted, as an old
// version did that read the phase first; or ends that.
func (a *API) PassOver(serverID string, does bool) error {
	return a.remember(serverID, func(_ agent.Kubelet, known *memory) {
		if known.OldBug == nil {
			known.OldBug = map[string]bool{}
		}
		if delete(known.OldBug, serverID); does {
			known.OldBug[serverID] = true
		}
	})
}

// Bare makes a server's kubelets write only the Node's status at heartbeats, as an old version did, so
// that labels and a taint that someone changes stay until the kubelet restarts; or ends that.
func (a *API) Bare(serverID string, does bool) error {
	return a.remember(serverID, func(_ agent.Kubelet, known *memory) {
		if known.Bare == nil {
			known.Bare = map[string]bool{}
		}
		if delete(known.Bare, serverID); does {
			known.Bare[serverID] = true
		}
	})
}

// FailVMs makes a server's kubelets fail to start virtual machines, with the reason why; "" ends that.
func (a *API) FailVMs(serverID, why string) error {
	return a.remember(serverID, func(_ agent.Kubelet, known *memory) {
		if known.NoVMs == nil {
			known.NoVMs = map[string]string{}
		}
		if delete(known.NoVMs, serverID); why != "" {
			known.NoVMs[serverID] = why
		}
	})
}

// FailsVMs reports whether FailVMs is in effect.
func (a *API) FailsVMs(serverID string) (fails bool, err error) {
	err = a.byHand(func(time.Time) error {
		_, known, err := a.newest(serverID)
		fails = err == nil && known.NoVMs[serverID] != ""
		return err
	})
	return fails, err
}

// IdentityOf returns the objects behind the token of a server's kubelet: its Secret and the bindings
// of its ServiceAccount.
func (a *API) IdentityOf(serverID string) (parts []Object, err error) {
	err = a.byHand(func(time.Time) error {
		k, _, err := a.newest(serverID)
		if err != nil {
			return err
		}
		c, ok, err := a.keys.read(k.Token)
		if err != nil {
			return err
		}
		if !ok || c.Secret == "" {
			return fmt.Errorf("the kubelet of %s has a token without a Secret in the cluster", k.Node)
		}
		parts = append(parts, Object{secrets, c.Namespace, c.Secret})
		bindings, err := a.state.list(clusterRoleBindings, "")
		for _, binding := range bindings {
			for _, one := range itemsAt(binding, "subjects") {
				if one["kind"] == "ServiceAccount" && one["namespace"] == c.Namespace && one["name"] == c.Account {
					parts = append(parts, Object{clusterRoleBindings, "", binding.GetName()})
				}
			}
		}
		return err
	})
	return parts, err
}

// Linger makes a server's kubelet skip deleted Pods that many times before it ends one, since a
// virtual machine takes time to stop; below 0 it never ends any.
func (a *API) Linger(serverID string, looks int) error {
	return a.remember(serverID, func(_ agent.Kubelet, known *memory) {
		if known.Lingers == nil {
			known.Lingers = map[string]int{}
		}
		if known.Lingers[serverID] = looks; looks == 0 {
			delete(known.Lingers, serverID)
		}
	})
}

// Lingers reports whether a server's kubelet ends no Pods.
func (a *API) Lingers(serverID string) (does bool, err error) {
	err = a.byHand(func(time.Time) error {
		_, known, err := a.newest(serverID)
		does = err == nil && known.Lingers[serverID] < 0
		return err
	})
	return does, err
}

// lingers reports whether a server's kubelet skips a Pod now, and counts it.
func (m *memory) lingers(serverID string) bool {
	left := m.Lingers[serverID]
	switch {
	case left == 1:
		delete(m.Lingers, serverID)
	case left > 1:
		m.Lingers[serverID] = left - 1
	}
	return left != 0
}
