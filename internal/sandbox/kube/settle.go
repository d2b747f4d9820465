package kube

import (
	"time"
)

// settle lets the cluster's controllers catch up. There is no daemon: what they would have done since
// the last request is computed at this one.
func (a *API) settle(now time.Time) error {
	if !a.ready {
		if err := a.bootstrap(now); err != nil {
			return err
		}
		a.ready = true
	}
	if err := a.settleNamespaces(now); err != nil {
		return err
	}
	if err := a.fillTokens(); err != nil {
		return err
	}
	return a.settleKubelets(now)
}

// observe updates the controllers that depend on the time of a write: a kubelet whose token was
// removed stops at that moment, not at the next request.
func (a *API) observe(now time.Time) error { return a.settleKubelets(now) }

// settleNamespaces adds what every namespace has, and empties the deleted ones.
func (a *API) settleNamespaces(now time.Time) error {
	all, err := a.state.list(namespaces, "")
	if err != nil {
		return err
	}
	for _, namespace := range all {
		if namespace.GetDeletionTimestamp() != nil {
			err = a.emptyNamespace(namespace)
		} else {
			err = a.furnish(namespace.GetName(), now)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// furnish adds the default ServiceAccount and the cluster's certificate to a namespace.
func (a *API) furnish(namespace string, now time.Time) error {
	account, err := a.state.peek(serviceAccounts, namespace, "default")
	if err == nil && account == nil {
		err = a.state.put(serviceAccounts, newObject(a.kinds.named(serviceAccounts), namespace, "default", now))
	}
	if err != nil {
		return err
	}
	const name = "kube-root-ca.crt"
	if present, err := a.state.peek(configMaps, namespace, name); err != nil || present != nil {
		return err
	}
	ca, err := a.authority()
	if err != nil {
		return err
	}
	root := newObject(a.kinds.named(configMaps), namespace, name, now)
	root.Object["data"] = map[string]any{"ca.crt": ca}
	return a.state.put(configMaps, root)
}

// emptyNamespace deletes the content of a deleted namespace. Objects with finalizers remain, and with
// them the namespace.
func (a *API) emptyNamespace(namespace *object) error {
	held := false
	for _, k := range a.kinds {
		if !k.namespaced || k.only != nil {
			continue
		}
		content, err := a.state.list(k.resource, namespace.GetName())
		if err != nil {
			return err
		}
		for _, o := range content {
			if len(o.GetFinalizers()) == 0 {
				err = a.state.remove(k.resource, o)
			} else if held = true; o.GetDeletionTimestamp() == nil {
				marked := o.DeepCopy()
				mark(marked, 0, namespace.GetDeletionTimestamp().Time)
				err = a.state.put(k.resource, marked)
			}
			if err != nil {
				return err
			}
		}
	}
	if held {
		return nil
	}
	return a.state.remove(namespaces, namespace)
}

// shown returns an object with its computed fields, as readers see it.
func (a *API) shown(resource string, o *object, now time.Time) (*object, error) {
	switch resource {
	case disruptionBudgets:
		return a.budgetStatus(o)
	case nodes:
		return shownNode(o, a.beats[o.GetName()], now), nil
	case leases:
		if o.GetNamespace() == leaseNamespace {
			return shownLease(o, a.beats[o.GetName()]), nil
		}
	}
	return o, nil
}
