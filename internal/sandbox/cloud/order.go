package cloud

import (
	"cmp"
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"time"
)

// order is the body of an order of one or several servers.
type order struct {
	Name, ProjectID, Type, OSID, Commitment string
	EnableVPC, EnableKext                   bool
	Bandwidth                               uint64
	Runners                                 struct {
		IDs []string `json:"runner_configuration_ids"`
	}
	Requests []struct {
		Name string `json:"name"`
	}
}

func readOrder(r *http.Request) (o order, failed *failure) {
	fields, failed := readBody(r)
	if failed != nil {
		return o, failed
	}
	into := map[string]any{"name": &o.Name, "project_id": &o.ProjectID, "type": &o.Type, "os_id": &o.OSID, "commitment_type": &o.Commitment,
		"enable_vpc": &o.EnableVPC, "enable_kext": &o.EnableKext, "public_bandwidth_bps": &o.Bandwidth,
		"applied_runner_configurations": &o.Runners, "requests": &o.Requests}
	for name, value := range fields {
		at, ok := into[name]
		if !ok {
			return o, invalidArgument(name, "unknown", "an order has no such field")
		}
		if failed := decode(name, value, at); failed != nil {
			return o, failed
		}
	}
	return o, nil
}

// createServer orders one server.
func (a *API) createServer(r *http.Request) (any, *failure) {
	o, failed := readOrder(r)
	if failed != nil {
		return nil, failed
	}
	made, failed := a.ordered(r.PathValue("zone"), o, []string{o.Name})
	if failed != nil {
		return nil, failed
	}
	return made[0].sealed(), nil
}

// createServers orders several servers: all of them, or none.
func (a *API) createServers(r *http.Request) (any, *failure) {
	o, failed := readOrder(r)
	if failed != nil {
		return nil, failed
	}
	var names []string
	for _, one := range o.Requests {
		names = append(names, one.Name)
	}
	made, failed := a.ordered(r.PathValue("zone"), o, names)
	if failed != nil {
		return nil, failed
	}
	for i := range made {
		made[i] = made[i].sealed()
	}
	return map[string]any{"servers": made}, nil
}

// ordered checks an order before it creates the first of its servers.
func (a *API) ordered(zone string, o order, names []string) ([]Server, *failure) {
	own, failed := a.settings()
	if failed != nil {
		return nil, failed
	}
	all, err := a.state.all()
	if err != nil {
		return nil, internal(err)
	}
	if failed := a.mayOrder(o, names); failed != nil {
		return nil, failed
	}
	model := Server{Type: o.Type, Zone: zone}
	system, failed := a.systemFor(model, o.OSID)
	if failed != nil {
		return nil, failed
	}
	mine := 0
	for _, s := range all {
		if s.OrganizationID == a.options.OrganizationID {
			mine++
		}
	}
	if own.Quota > 0 && mine+len(names) > own.Quota {
		return nil, quotaExceeded(own.Quota, mine)
	}
	if own.stock(zone, o.Type) < len(names) {
		return nil, outOfStock()
	}
	made := make([]Server, len(names))
	for i, name := range names {
		own.Ordered++
		model.Name = name
		if made[i], failed = a.newServer(own, model, o, *system, all); failed != nil {
			return nil, failed
		}
		all = append(all, made[i])
	}
	own.take(zone, o.Type, len(names))
	if err := a.set(func(s *Settings) { *s = own }); err != nil {
		return nil, internal(err)
	}
	for _, server := range made {
		if err := a.state.put(server); err != nil {
			return nil, internal(err)
		}
	}
	return made, nil
}

func (a *API) mayOrder(o order, names []string) *failure {
	own, failed := a.lacking()
	switch {
	case failed != nil:
		return failed
	case own.Create == "denied", own.Update == "denied", o.ProjectID != a.project(own):
		return denied("create")
	case len(names) == 0:
		return invalidArgument("requests", "required", "an order needs at least one server")
	case slices.Contains(names, ""):
		return invalidArgument("name", "required", "a server needs a name")
	}
	if !slices.ContainsFunc(typeTable(), func(t serverType) bool { return t.Name == o.Type }) {
		return invalidArgument("type", "constraint", fmt.Sprintf("%q is not a server type", o.Type))
	}
	return nil
}

// newServer returns the server of an order, which is not delivered yet. A system that is not the type's
// default is installed afterwards, which takes longer.
func (a *API) newServer(own Settings, model Server, o order, system OS, others []Server) (Server, *failure) {
	now := a.options.Now().UTC().Truncate(time.Microsecond)
	lasts, _ := own.Delivery.or(time.Second) // checked when read
	if system.Name != own.defaultOS(model.Type) {
		extra, _ := own.Reinstall.or(3 * time.Second)
		lasts += extra
	}
	lease, _ := own.Lease.or(own.lease(model.Type))
	s := model
	s.ID, s.IP = newID(own.Ordered, others), newAddress(others)
	s.ProjectID, s.OrganizationID = o.ProjectID, a.options.OrganizationID
	s.SSHUsername = cmp.Or(a.options.SSHUser, "m1")
	s.CreatedAt, s.UpdatedAt, s.DeletableAt = now, now, now.Add(lease)
	s.VpcStatus = "vpc_disabled"
	if o.EnableVPC {
		s.VpcStatus = "vpc_enabled"
	}
	s.PublicBandwidthBps = cmp.Or(o.Bandwidth, giga)
	s.KextEnabled = o.EnableKext
	s.AppliedRunnerConfigurationIDs = o.Runners.IDs
	if failed := s.commit(cmp.Or(o.Commitment, "duration_24h")); failed != nil {
		return Server{}, failed
	}
	keys, failed := a.keys()
	if failed != nil {
		return Server{}, failed
	}
	s.install(&system, keys, now)
	s.begin(starting, now, lasts)
	return s.normal(), nil
}

// newID returns the id of the server of an order. Its first five digits are unique, because
// names of hosts end in them.
func newID(count int, others []Server) string {
	for attempt := 0; ; attempt++ {
		id := derivedUUID(fmt.Sprintf("order %d %d", count, attempt))
		if !slices.ContainsFunc(others, func(s Server) bool { return s.ID[:5] == id[:5] }) {
			return id
		}
	}
}

// newAddress returns the first free address of a range that no delivered server of a new world has.
func newAddress(others []Server) netip.Addr {
	address := netip.AddrFrom4([4]byte{198, 19, 0, 1})
	for slices.ContainsFunc(others, func(s Server) bool { return s.IP == address }) {
		address = address.Next()
	}
	return address
}

// deleteServer removes a server at once, but not before its lease ends.
func (a *API) deleteServer(r *http.Request) (any, *failure) {
	server, failed := a.find(r)
	if failed == nil {
		failed = server.inWork()
	}
	if failed != nil {
		return nil, failed
	}
	own, failed := a.lacking()
	switch {
	case failed != nil:
		return nil, failed
	case own.Delete == "denied", own.Update == "denied":
		return nil, denied("delete")
	}
	if a.options.Now().Before(server.DeletableAt) {
		return nil, preconditionFailed("the server cannot be deleted before " + server.DeletableAt.UTC().Format(time.RFC3339))
	}
	if err := a.state.remove(server); err != nil {
		return nil, internal(err)
	}
	return nil, nil
}
