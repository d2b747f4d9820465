package cloud

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/macfleet/macfleet/internal/sandbox/store"
)

// Create writes the state of a new world with these servers into dir, before any API serves it.
func Create(dir string, servers []Server) error {
	folder := filepath.Join(dir, "servers")
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return fmt.Errorf("create the sandbox's servers: %w", err)
	}
	for _, server := range servers {
		data, err := store.Encode(entryOf(server.normal()))
		if err != nil {
			return err
		}
		// Nothing reads the folder before it is complete, so no rename is needed.
		if err := os.WriteFile(filepath.Join(folder, server.ID+".json"), data, 0o600); err != nil {
			return fmt.Errorf("create the sandbox's servers: %w", err)
		}
	}
	return nil
}

// Servers returns all servers of the world, with their passwords.
func (a *API) Servers() ([]Server, error) {
	unlock, err := a.lock.Lock()
	if err != nil {
		return nil, err
	}
	defer unlock()
	return a.state.all()
}

// Server returns the server with an id, with its passwords, if there is one.
func (a *API) Server(id string) (server Server, found bool, err error) {
	if !ValidUUID(id) {
		return Server{}, false, nil
	}
	unlock, err := a.lock.Lock()
	if err != nil {
		return Server{}, false, err
	}
	defer unlock()
	return a.state.get(id)
}

// ServerAt returns the server with a public address, if there is one.
func (a *API) ServerAt(address netip.Addr) (server Server, found bool, err error) {
	unlock, err := a.lock.Lock()
	if err != nil {
		return Server{}, false, err
	}
	defer unlock()
	// The index is only a hint: people and other processes change the files.
	if id, ok := a.byAddress[address]; ok {
		server, found, err = a.state.get(id)
		if err != nil || found && server.IP == address {
			return server, found, err
		}
	}
	all, err := a.state.all()
	if err != nil {
		return Server{}, false, err
	}
	clear(a.byAddress)
	for _, server := range all {
		a.byAddress[server.IP] = server.ID
	}
	i := slices.IndexFunc(all, func(s Server) bool { return s.IP == address })
	if i < 0 {
		return Server{}, false, nil
	}
	return all[i], true, nil
}

// Rename changes a server's name without the API, if change accepts the present one.
func (a *API) Rename(id string, change func(present string) (name string, ok bool)) error {
	return a.Edit(id, func(server *Server) bool {
		name, ok := change(server.Name)
		if ok {
			server.Name = name
			server.UpdatedAt = after(server.UpdatedAt, a.options.Now())
		}
		return ok
	})
}

// Deliver adds a delivered server with the default system of its type, which someone ordered. Neither the stock nor the
// quota counts.
func (a *API) Deliver(zone, serverType, name string) (Server, error) {
	unlock, err := a.lock.Lock()
	if err != nil {
		return Server{}, err
	}
	defer unlock()
	all, err := a.state.all()
	if err != nil {
		return Server{}, err
	}
	own, failed := a.settings()
	if failed != nil {
		return Server{}, failed
	}
	own.Ordered++
	now := a.options.Now().UTC().Truncate(time.Microsecond)
	lease, _ := own.Lease.or(own.lease(serverType)) // checked when read
	server := Server{ID: newID(own.Ordered, all), Name: name, IP: newAddress(all), Type: serverType, Zone: zone, ProjectID: a.options.ProjectID,
		OrganizationID: a.options.OrganizationID, SSHUsername: cmp.Or(a.options.SSHUser, "m1"), Status: "ready", Delivered: true,
		CreatedAt: now, UpdatedAt: now, DeletableAt: now.Add(lease), VpcStatus: "vpc_disabled", PublicBandwidthBps: giga, Commitment: &Commitment{Type: "none"}}
	system, failed := a.systemFor(server, "")
	keys, unread := a.keys()
	if failed = cmp.Or(failed, unread); failed != nil {
		return Server{}, failed
	}
	server.install(system, keys, now)
	server = server.normal()
	if err := a.set(func(s *Settings) { s.Ordered = own.Ordered }); err != nil {
		return Server{}, err
	}
	return server, a.state.put(server)
}

// newID returns the id of a new server. Its first five digits are unique, because names of hosts end in them.
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

// Remove deletes a server without the API, if there is one.
func (a *API) Remove(id string) error {
	if !ValidUUID(id) {
		return nil
	}
	unlock, err := a.lock.Lock()
	if err != nil {
		return err
	}
	defer unlock()
	server, found, err := a.state.get(id)
	if err != nil || !found {
		return err
	}
	return a.state.remove(server)
}

// Reinstall wipes a server at once, as a person does in the console with the system that is offered
// first.
func (a *API) Reinstall(id string) error {
	var refused error
	err := a.Edit(id, func(server *Server) bool {
		system, failed := a.systemFor(*server, "")
		keys, unread := a.keys()
		if failed = cmp.Or(failed, unread); failed != nil {
			refused = failed
			return false
		}
		server.install(system, keys, a.options.Now())
		server.UpdatedAt = after(server.UpdatedAt, a.options.Now())
		return true
	})
	server, found, unread := a.Server(id)
	if err = errors.Join(err, refused, unread); err != nil || !found || a.options.Changed == nil {
		return err
	}
	return a.options.Changed(server)
}

// Edit changes a server without the API, if there is one and change accepts it.
func (a *API) Edit(id string, change func(*Server) bool) error {
	unlock, err := a.lock.Lock()
	if err != nil {
		return err
	}
	defer unlock()
	server, found, err := a.state.get(id)
	if err != nil || !found || !change(&server) {
		return err
	}
	return a.state.put(server)
}

// Passwords are what the API discloses in a request for a single server.
type Passwords struct{ Sudo, VNC string }

// Disclose changes the passwords that the API reports of a server, if change accepts the present ones.
// The Mac's own password stays.
func (a *API) Disclose(id string, change func(present Passwords) (Passwords, bool)) error {
	return a.Edit(id, func(server *Server) bool {
		next, ok := change(Passwords{server.SudoPassword, server.VncURL})
		if ok {
			server.SudoPassword, server.VncURL = next.Sudo, next.VNC
		}
		return ok
	})
}
