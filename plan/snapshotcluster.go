package plan

import (
	"time"

	"github.com/macfleet/macfleet/fleet/inventory"
)

type clusterFile struct {
	Pods       seenFile[[]podFile]      `json:"pods"`
	Identities seenFile[[]identityFile] `json:"identities"`
	Join       seenFile[joinFile]       `json:"join"`
	Objects    seenFile[[]objectFile]   `json:"objects"`
	Machines   seenFile[[]machineFile]  `json:"machines"`
}

type podFile struct {
	Namespace  text      `json:"namespace"`
	Name       text      `json:"name"`
	UID        text      `json:"uid"`
	Node       text      `json:"node"`
	Phase      text      `json:"phase"`
	Reason     text      `json:"reason"`
	Controller text      `json:"controller"`
	Mirror     bool      `json:"mirror"`
	Finalizers []text    `json:"finalizers"`
	Due        time.Time `json:"due,omitzero"`
	Overdue    bool      `json:"overdue"`
}

type identityFile struct {
	Host           text `json:"host"`
	ServiceAccount text `json:"service_account"`
	Secret         text `json:"secret"`
	Issued         bool `json:"issued"`
	Bound          bool `json:"bound"`
}

type joinFile struct {
	Server text `json:"server"`
	CA     text `json:"ca"`
}

type objectFile struct {
	Kind      text `json:"kind"`
	Namespace text `json:"namespace"`
	Name      text `json:"name"`
	State     text `json:"state"`
	Why       text `json:"why"`
	Prepared  bool `json:"prepared"`
}

type machineFile struct {
	Namespace      text `json:"namespace"`
	Name           text `json:"name"`
	ProviderID     text `json:"provider_id"`
	NodeRef        text `json:"node_ref"`
	Infrastructure text `json:"infrastructure"`
	Paused         bool `json:"paused"`
	PartPaused     bool `json:"infrastructure_paused"`
	PartUnread     text `json:"infrastructure_unread"`
	Deployment     text `json:"deployment"`
	Available      bool `json:"available"`
}

// toList and fromList carry a list that may be unread over.
func toList[A, B any](s inventory.Seen[[]A], convert func(A) B) seenFile[[]B] {
	return toFile(s, func(all []A) []B { return each(all, convert) })
}

func fromList[A, B any](s seenFile[[]A], convert func(A) B) inventory.Seen[[]B] {
	return fromFile(s, func(all []A) []B { return each(all, convert) })
}

func clusterToFile(c inventory.Cluster) clusterFile {
	return clusterFile{Pods: toList(c.Pods, podToFile), Identities: toList(c.Identities, identityToFile),
		Join:    toFile(c.Join, func(j inventory.Join) joinFile { return joinFile{text(j.Server), text(j.CA)} }),
		Objects: toList(c.Objects, objectToFile), Machines: toList(c.Machines, machineToFile)}
}

func (f clusterFile) cluster() inventory.Cluster {
	return inventory.Cluster{Pods: fromList(f.Pods, podFile.pod), Identities: fromList(f.Identities, identityFile.identity),
		Join:    fromFile(f.Join, func(j joinFile) inventory.Join { return inventory.Join{Server: string(j.Server), CA: string(j.CA)} }),
		Objects: fromList(f.Objects, objectFile.object), Machines: fromList(f.Machines, machineFile.machine)}
}

func podToFile(p inventory.Pod) podFile {
	return podFile{Namespace: text(p.Namespace), Name: text(p.Name), UID: text(p.UID), Node: text(p.Node), Phase: text(p.Phase),
		Reason: text(p.Reason), Controller: text(p.Controller), Mirror: p.Mirror, Finalizers: each(p.Finalizers, asText), Due: p.Due, Overdue: p.Overdue}
}

func (f podFile) pod() inventory.Pod {
	return inventory.Pod{Namespace: string(f.Namespace), Name: string(f.Name), UID: string(f.UID), Node: string(f.Node), Phase: string(f.Phase),
		Reason: string(f.Reason), Controller: string(f.Controller), Mirror: f.Mirror, Finalizers: each(f.Finalizers, asString), Due: f.Due, Overdue: f.Overdue}
}

func identityToFile(i inventory.Identity) identityFile {
	return identityFile{Host: text(i.Host), ServiceAccount: text(i.ServiceAccount), Secret: text(i.Secret), Issued: i.Issued, Bound: i.Bound}
}

func (f identityFile) identity() inventory.Identity {
	return inventory.Identity{Host: string(f.Host), ServiceAccount: string(f.ServiceAccount), Secret: string(f.Secret), Issued: f.Issued, Bound: f.Bound}
}

func objectToFile(o inventory.Object) objectFile {
	return objectFile{Kind: text(o.Kind), Namespace: text(o.Namespace), Name: text(o.Name), State: text(o.State), Why: text(o.Why), Prepared: o.Prepared}
}

func (f objectFile) object() inventory.Object {
	return inventory.Object{Kind: string(f.Kind), Namespace: string(f.Namespace), Name: string(f.Name),
		State: inventory.ObjectState(f.State), Why: string(f.Why), Prepared: f.Prepared}
}

func machineToFile(m inventory.Machine) machineFile {
	return machineFile{Namespace: text(m.Namespace), Name: text(m.Name), ProviderID: text(m.ProviderID), NodeRef: text(m.NodeRef),
		Paused: m.Paused, Deployment: text(m.Deployment), Available: m.Available,
		Infrastructure: text(m.Infrastructure), PartPaused: m.InfrastructurePaused, PartUnread: text(m.InfrastructureUnread)}
}

func (f machineFile) machine() inventory.Machine {
	return inventory.Machine{Namespace: string(f.Namespace), Name: string(f.Name), ProviderID: string(f.ProviderID), NodeRef: string(f.NodeRef),
		Paused: f.Paused, Deployment: string(f.Deployment), Available: f.Available,
		Infrastructure: string(f.Infrastructure), InfrastructurePaused: f.PartPaused, InfrastructureUnread: string(f.PartUnread)}
}
