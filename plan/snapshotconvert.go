package plan

import (
	"fmt"
	"unicode/utf8"

	"github.com/macfleet/macfleet/fleet/inventory"
)

// fileOf returns a snapshot as its file holds it.
func fileOf(s Snapshot) snapshotFile {
	f := snapshotFile{Servers: each(s.Servers, serverToFile), Pins: each(s.Pins, pinToFile),
		Nodes: toList(s.Nodes, nodeToFile),
		Hosts: make(map[string]hostFile, len(s.Hosts))}
	for id, h := range s.Hosts {
		f.Hosts[id] = hostToFile(h)
	}
	cluster := toFile(s.Cluster, clusterToFile)
	f.Cluster = &cluster
	f.Lock = lockToFile(s.Lock)
	return f
}

// snapshot returns what the file holds.
func (f snapshotFile) snapshot() Snapshot {
	s := Snapshot{Servers: each(f.Servers, serverFile.server), Pins: each(f.Pins, pinFile.pin),
		Nodes: fromList(f.Nodes, nodeFile.node),
		Hosts: make(map[string]HostSeen, len(f.Hosts))}
	for id, h := range f.Hosts {
		s.Hosts[id] = h.seen()
	}
	s.Lock = f.Lock.lock()
	switch {
	case f.Cluster != nil:
		s.Cluster = fromFile(*f.Cluster, clusterFile.cluster)
	case s.Nodes.IsAbsent():
		s.Cluster = inventory.Absent[inventory.Cluster]()
	default:
		s.Cluster = inventory.Unread[inventory.Cluster]("it was recorded by a macfleet that did not look there")
	}
	return s
}

// missing returns a key without which the file says nothing, or "". An
// inventory that is not there must not look like an empty one.
func (f recordFile) missing() string {
	switch {
	case f.Configuration == "":
		return "configuration"
	case f.Servers == nil:
		return "servers"
	case f.Nodes.State == "":
		return "nodes"
	case f.Pins == nil:
		return "pins"
	case f.Hosts == nil:
		return "hosts"
	}
	for id, h := range f.Hosts {
		if h.Serial.State == "" || h.OSVersion.State == "" || h.Marker.State == "" || h.Claim.State == "" {
			return fmt.Sprintf("serial, os_version, marker or claim of host %s", id)
		}
		for probe, a := range h.Facts {
			if a.State == "" {
				return fmt.Sprintf("answer to %s of host %s", probe, id)
			}
		}
	}
	return ""
}

// checkIDs returns an error for keys that JSON cannot hold.
func (f recordFile) checkIDs() error {
	if f.Nodes.Value != nil {
		for _, n := range *f.Nodes.Value {
			for label := range n.Labels {
				if !utf8.ValidString(label) {
					return fmt.Errorf("the label %q of Node %s is no text", label, n.Name)
				}
			}
		}
	}
	for id, h := range f.Hosts {
		if !utf8.ValidString(id) {
			return fmt.Errorf("the server id %q is no text", id)
		}
		for probe := range h.Facts {
			if !utf8.ValidString(probe) {
				return fmt.Errorf("the probe id %q is no text", probe)
			}
		}
	}
	return nil
}

func serverToFile(s inventory.Server) serverFile {
	return serverFile{ID: text(s.ID), Name: text(s.Name), Type: text(s.Type), Zone: text(s.Zone), Address: text(s.Address),
		OSFamily: text(s.OSFamily), Status: text(s.Status), Delivered: s.Delivered, Created: s.Created}
}

func (f serverFile) server() inventory.Server {
	return inventory.Server{ID: string(f.ID), Name: string(f.Name), Type: string(f.Type), Zone: string(f.Zone), Address: string(f.Address),
		OSFamily: string(f.OSFamily), Status: string(f.Status), Delivered: f.Delivered, Created: f.Created}
}

func nodeToFile(n inventory.Node) nodeFile {
	f := nodeFile{Name: text(n.Name), ProviderID: text(n.ProviderID), Ready: text(n.Ready), Cordoned: n.Cordoned, Why: text(n.Why),
		Heard: n.Heard, UID: text(n.UID), CordonedBy: text(n.CordonedBy), CordonRun: text(n.CordonRun), Hold: n.Hold, HoldUnread: text(n.HoldUnread)}
	if n.Labels != nil {
		f.Labels = make(map[string]text, len(n.Labels))
	}
	for k, v := range n.Labels {
		f.Labels[k] = text(v)
	}
	if n.Capacity != (inventory.Capacity{}) {
		f.Capacity = &capacityFile{CPU: n.Capacity.CPU, Memory: n.Capacity.Memory, Pods: n.Capacity.Pods}
	}
	return f
}

func (f nodeFile) node() inventory.Node {
	n := inventory.Node{Name: string(f.Name), ProviderID: string(f.ProviderID), Ready: inventory.Readiness(f.Ready),
		Cordoned: f.Cordoned, Why: string(f.Why), Heard: f.Heard, UID: string(f.UID), CordonedBy: string(f.CordonedBy), CordonRun: string(f.CordonRun),
		Hold: f.Hold, HoldUnread: string(f.HoldUnread)}
	if f.Labels != nil {
		n.Labels = make(map[string]string, len(f.Labels))
	}
	for k, v := range f.Labels {
		n.Labels[k] = string(v)
	}
	if c := f.Capacity; c != nil {
		n.Capacity = inventory.Capacity{CPU: c.CPU, Memory: c.Memory, Pods: c.Pods}
	}
	return n
}

func pinToFile(p Pin) pinFile {
	return pinFile{ServerID: text(p.ServerID), Name: text(p.Name), Key: text(p.Key), Since: p.Since}
}

func (f pinFile) pin() Pin {
	return Pin{ServerID: string(f.ServerID), Name: string(f.Name), Key: string(f.Key), Since: f.Since}
}

func hostToFile(h HostSeen) hostFile {
	same := func(c Claim) Claim { return c }
	f := hostFile{At: h.At, Path: text(h.Path), Key: text(h.Key), Fingerprint: text(h.Fingerprint), Pinned: h.Pinned, Root: h.Root,
		Serial: toFile(h.Serial, asText), OSVersion: toFile(h.OSVersion, asText),
		Marker: toFile(h.Marker, withSteps), Claim: toFile(h.Claim, same),
		Facts: make(map[string]seenFile[answerFile], len(h.Facts))}
	f.Trouble = troubleToFile(h.Trouble)
	for _, step := range h.Pending {
		f.Pending = append(f.Pending, text(step))
	}
	if u := h.Undone; u != nil {
		f.Undone = &undoneFile{Step: text(u.Step), At: u.At, Why: text(u.Why), Exit: u.Exit}
	}
	f.Entered = enteredToFile(h.Entered)
	if w := h.Password; w != nil {
		f.Password = &passwordFile{Source: text(w.Source), Trouble: troubleToFile(w.Trouble)}
	}
	for id, a := range h.Facts {
		f.Facts[id] = toFile(a, func(a Answer) answerFile { return answerFile{a.Exit, text(a.Stdout), text(a.Stderr)} })
	}
	return f
}

func (f hostFile) seen() HostSeen {
	same := func(c Claim) Claim { return c }
	h := HostSeen{At: f.At, Path: string(f.Path), Key: string(f.Key), Fingerprint: string(f.Fingerprint), Pinned: f.Pinned, Root: f.Root,
		Serial: fromFile(f.Serial, asString), OSVersion: fromFile(f.OSVersion, asString),
		Marker: fromFile(f.Marker, withSteps), Claim: fromFile(f.Claim, same),
		Facts: make(Facts, len(f.Facts))}
	h.Trouble = f.Trouble.trouble()
	for _, step := range f.Pending {
		h.Pending = append(h.Pending, StepID(step))
	}
	if u := f.Undone; u != nil {
		h.Undone = &Undone{Step: StepID(u.Step), At: u.At, Why: string(u.Why), Exit: u.Exit}
	}
	h.Entered = f.Entered.entered()
	if w := f.Password; w != nil {
		h.Password = &Password{Source: string(w.Source), Trouble: w.Trouble.trouble()}
	}
	for id, a := range f.Facts {
		h.Facts[id] = fromFile(a, func(a answerFile) Answer { return Answer{a.Exit, string(a.Stdout), string(a.Stderr)} })
	}
	return h
}

func troubleToFile(t *Trouble) *troubleFile {
	if t == nil {
		return nil
	}
	return &troubleFile{Code: text(t.Code), Text: text(t.Text), Remedy: text(t.Remedy)}
}

func (f *troubleFile) trouble() *Trouble {
	if f == nil {
		return nil
	}
	return &Trouble{Code: string(f.Code), Text: string(f.Text), Remedy: string(f.Remedy)}
}

func asText(s string) text { return text(s) }

func asString(t text) string { return string(t) }

// withSteps returns a marker whose steps are {} in JSON where it has none.
func withSteps(m Marker) Marker {
	if m.Steps == nil {
		m.Steps = make(map[StepID]Digest)
	}
	return m
}
