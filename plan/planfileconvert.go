package plan

import (
	"slices"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/fleet/inventory"
)

// toFile returns the plan file as it is written, still without its self_digest.
func (f PlanFile) toFile() planFile {
	p := f.Plan
	return planFile{FormatVersion: PlanFileFormat, MacfleetVersion: f.Version, Configuration: p.Owner.Name, Environment: p.Owner.Environment,
		ConfigurationHash: f.Configuration, MadeAt: f.Made, MadeBy: f.Who, ExpiresAt: f.Expires,
		Selection: selectionFile{On: each(f.On, plain), Exclude: each(f.Exclude, plain), Rollback: f.Rollback,
			Steps: each(p.Steps, func(id StepID) string { return string(id) })},
		Plan: plannedFile{Cluster: p.Cluster, Fleets: each(p.Fleets, plain), Hosts: each(p.Hosts, plannedHostToFile),
			Actions: each(p.Actions, func(a Action) plannedActionFile { return plannedActionToFile(a, f.approved[a.Address()]) }),
			Shortages: each(p.Shortages, func(s Shortage) shortageFile {
				return shortageFile{s.Fleet, s.Group, s.Type, s.OS, s.Missing, *troubleToFile(&s.Trouble)}
			}),
			Rejected: each(p.Rejected, func(r Rejected) troubledServerFile {
				return troubledServerFile{text(r.Server.ID), text(r.Server.Name), *troubleToFile(&r.Trouble)}
			}),
			Strays: each(p.Strays, func(s inventory.Server) text { return text(s.Name) }),
			Lost: each(p.Lost, func(l Lost) lostFile {
				return lostFile{text(l.Name), l.Fleet, text(l.ServerID), *troubleToFile(&l.Trouble)}
			}),
			Unread:   each(p.Unread, func(u Unread) unreadFile { return unreadToFile("", u) }),
			Warnings: each(p.Warnings, func(t Trouble) troubleFile { return *troubleToFile(&t) })}}
}

// planFile returns what a file holds.
func (f planFile) planFile() (PlanFile, error) {
	p := &Plan{Owner: fleet.Owner{Name: f.Configuration, Environment: f.Environment}, Cluster: f.Plan.Cluster, Fleets: f.Plan.Fleets,
		Hosts: each(f.Plan.Hosts, plannedHostFile.host), Steps: each(f.Selection.Steps, func(id string) StepID { return StepID(id) }),
		Shortages: each(f.Plan.Shortages, func(s shortageFile) Shortage {
			return Shortage{s.Fleet, s.Group, s.Type, s.OS, s.Missing, *s.Trouble.trouble()}
		}),
		Rejected: each(f.Plan.Rejected, func(r troubledServerFile) Rejected {
			return Rejected{inventory.Server{ID: string(r.ID), Name: string(r.Name)}, *r.Trouble.trouble()}
		}),
		Strays: each(f.Plan.Strays, func(s text) inventory.Server { return inventory.Server{Name: string(s)} }),
		Lost: each(f.Plan.Lost, func(l lostFile) Lost {
			return Lost{string(l.Name), l.Fleet, string(l.ServerID), *l.Trouble.trouble()}
		}),
		Unread:   each(f.Plan.Unread, unreadFile.unread),
		Warnings: each(f.Plan.Warnings, func(t troubleFile) Trouble { return *t.trouble() })}
	p.Narrowed = len(f.Selection.On)+len(f.Selection.Exclude)+len(f.Selection.Steps) > 0
	out := PlanFile{Version: f.MacfleetVersion, Configuration: f.ConfigurationHash, Who: f.MadeBy, Made: f.MadeAt, Expires: f.ExpiresAt,
		On: f.Selection.On, Exclude: f.Selection.Exclude, Plan: p, Rollback: f.Selection.Rollback, approved: make(map[string]string)}
	for _, a := range f.Plan.Actions {
		action, err := a.action()
		if err != nil {
			return PlanFile{}, err
		}
		p.Actions = append(p.Actions, action)
		if a.Approves != "" {
			out.approved[action.Address()] = a.Approves
		}
	}
	return out, nil
}

func plain(s string) string { return s }

func plannedHostToFile(h Host) plannedHostFile {
	f := plannedHostFile{Name: text(h.Name), Fleet: h.Fleet, Group: h.Group, Member: h.Member, Fingerprint: text(h.Seen.Fingerprint), Pinned: h.Seen.Pinned,
		Server:    placedServerFile{text(h.Server.ID), text(h.Server.Name), text(h.Server.Type), text(h.Server.Zone)},
		Converged: string(h.Converged), Unknown: troubleToFile(h.Unknown), Refused: troubleToFile(h.Refused),
		Unread:   each(h.Unread, func(u StepUnread) unreadFile { return unreadToFile(u.Step, u.Unread) }),
		Warnings: each(h.Warnings, func(w StepWarning) warningFile { return warningFile{string(w.Step), *troubleToFile(&w.Trouble)} })}
	if x := h.Held; x != nil {
		f.Held = &heldFile{Hold: x.Hold, In: x.In, Unread: text(x.Unread), Expired: x.Expired}
	}
	return f
}

func (f plannedHostFile) host() Host {
	h := Host{Name: string(f.Name), Fleet: f.Fleet, Group: f.Group, Member: f.Member, Converged: Convergence(f.Converged),
		Seen:    HostSeen{Fingerprint: string(f.Fingerprint), Pinned: f.Pinned},
		Server:  inventory.Server{ID: string(f.Server.ID), Name: string(f.Server.Name), Type: string(f.Server.Type), Zone: string(f.Server.Zone)},
		Unknown: f.Unknown.trouble(), Refused: f.Refused.trouble(),
		Unread:   each(f.Unread, func(u unreadFile) StepUnread { return StepUnread{StepID(u.Step), u.unread()} }),
		Warnings: each(f.Warnings, func(w warningFile) StepWarning { return StepWarning{StepID(w.Step), *w.trouble()} })}
	if x := f.Held; x != nil {
		h.Held = &Held{Hold: x.Hold, In: x.In, Unread: string(x.Unread), Expired: x.Expired}
	}
	return h
}

func unreadToFile(step StepID, u Unread) unreadFile {
	return unreadFile{Step: string(step), Probe: text(u.Probe), Why: text(u.Why), Bytes: text(u.Bytes)}
}

func (f unreadFile) unread() Unread {
	return Unread{Probe: string(f.Probe), Why: string(f.Why), Bytes: string(f.Bytes)}
}

func plannedActionToFile(a Action, digest string) plannedActionFile {
	f := plannedActionFile{Address: text(a.Address()), Approves: digest, Kind: string(a.Kind), Host: text(a.Host), Fleet: a.Fleet, Group: a.Group,
		ServerID: text(a.ServerID), Step: string(a.Step), Reason: reasonFile{text(a.Reason.Code), text(a.Reason.Text)},
		Drift: a.Origin.Drift, Pending: a.Origin.Pending, Deferred: a.Deferred, Disruption: a.Disruption.String(), Refused: troubleToFile(a.Refusal),
		Fields:  each(a.Fields, func(x Field) fieldFile { return fieldFile{text(x.Name), text(x.Before), text(x.After)} }),
		Changes: each(a.Changes, plannedChangeToFile),
		Pods: each(a.Pods, func(p inventory.Pod) podNameFile {
			return podNameFile{text(p.Namespace), text(p.Name), text(p.UID)}
		})}
	if a.Object != nil {
		o := objectToFile(*a.Object)
		f.Object = &o
	}
	return f
}

func (f plannedActionFile) action() (Action, error) {
	a := Action{Kind: Kind(f.Kind), Host: string(f.Host), Fleet: f.Fleet, Group: f.Group, ServerID: string(f.ServerID), Step: StepID(f.Step),
		Reason: Reason{string(f.Reason.Code), string(f.Reason.Text)}, Origin: Origin{Drift: f.Drift, Pending: f.Pending},
		Deferred: f.Deferred, Refusal: f.Refused.trouble(),
		Fields:  each(f.Fields, func(x fieldFile) Field { return Field{string(x.Name), string(x.Before), string(x.After)} }),
		Changes: each(f.Changes, plannedChangeFile.change),
		Pods: each(f.Pods, func(p podNameFile) inventory.Pod {
			return inventory.Pod{Namespace: string(p.Namespace), Name: string(p.Name), UID: string(p.UID)}
		})}
	if f.Object != nil {
		o := f.Object.object()
		a.Object = &o
	}
	classes := []Disruption{NoDisruption, Restart, Drain, Reboot, Wipe}
	i := slices.IndexFunc(classes, func(d Disruption) bool { return d.String() == f.Disruption })
	if i < 0 || a.Kind == KeepObject && a.Object == nil {
		return a, noPlanFile("its action %s is of no kind that there is", f.Address)
	}
	a.Disruption = classes[i]
	return a, nil
}

func plannedChangeToFile(c Change) plannedChangeFile {
	f := plannedChangeFile{Reason: reasonFile{text(c.Reason.Code), text(c.Reason.Text)}}
	if g := c.Guard; g != nil {
		f.Guard = &guardFile{Armed: g.Restore != nil, Why: text(g.Why)}
	}
	if d := c.Delivery; d != nil {
		x := d.Artifact
		f.Delivery = &deliveryKeptFile{Artifact: x.Name, Version: x.Version, SHA256: x.SHA256, Fetch: string(x.Fetch), Size: x.Size, Space: d.Space}
		if free, ok := d.Free.Get(); ok {
			f.Delivery.Free = &free
		}
	}
	return f
}

// change returns what a person reads of a change. Nothing of it can be run.
func (f plannedChangeFile) change() Change {
	c := Change{Reason: Reason{string(f.Reason.Code), string(f.Reason.Text)}}
	if g := f.Guard; g != nil {
		c.Guard = &Guard{Why: string(g.Why)}
		if g.Armed {
			c.Guard.Restore = new(Command)
		}
	}
	if d := f.Delivery; d != nil {
		c.Delivery = &Delivery{Space: d.Space, Artifact: fleet.Artifact{Name: d.Artifact, Version: d.Version, SHA256: d.SHA256, Fetch: fleet.Fetch(d.Fetch), Size: d.Size}}
		if d.Free != nil {
			c.Delivery.Free = inventory.Present(*d.Free)
		}
	}
	return c
}
