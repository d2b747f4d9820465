package kube

import (
	"time"
)

// settle lets the cluster's controllers do what was theirs to do until now. There is no daemon:
// what they would have done since the last request is worked out at this one.
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

// observe lets those look that must know when something was written: a kubelet whose token was
// removed has ended at that moment, not when someone asks next.
func (a *API) observe(now time.Time) error { return a.settleKubelets(now) }

// settleNamespaces gives each namespace what every namespace has, and empties those that are to go.
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

// furnish gives a namespace its default ServiceAccount and the certificate of the cluster.
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

// emptyNamespace deletes what is in a namespace that is to go. What a finalizer holds stays, and
// the namespace with it.
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

// shown gives an object as its readers see it, with what is worked out and not written.
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
