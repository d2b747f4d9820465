package sandbox

import (
	"cmp"
	"fmt"
	"runtime"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/macfleet/macfleet/internal/sandbox/cloud"
)

// Host is a machine of the world for a person.
type Host struct {
	ID, Name, Type, Zone, Address string
	Root                          string   // the folder with the Mac's files
	Incidents                     []string // injected and not yet healed
}

// Hosts returns all machines of the world, sorted by name.
func (w *World) Hosts() ([]Host, error) {
	servers, err := w.cloud.Servers()
	if err != nil {
		return nil, err
	}
	slices.SortFunc(servers, func(a, b cloud.Server) int { return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.ID, b.ID)) })
	open, err := w.incidents()
	if err != nil {
		return nil, err
	}
	hosts := make([]Host, len(servers))
	var group errgroup.Group
	group.SetLimit(2 * runtime.NumCPU())
	for i, server := range servers {
		hosts[i] = Host{
			ID: server.ID, Name: server.Name, Type: server.Type, Zone: server.Zone, Address: server.IP.String(),
			Incidents: open[server.ID].names(),
		}
		group.Go(func() error {
			machine, err := w.macs.get(server)
			if err == nil {
				hosts[i].Root = machine.Root()
			}
			return err
		})
	}
	return hosts, group.Wait()
}

// Path returns the folder with a host's files.
func (w *World) Path(host string) (string, error) {
	server, err := w.find(host)
	if err != nil {
		return "", err
	}
	machine, err := w.macs.get(server)
	if err != nil {
		return "", err
	}
	return machine.Root(), nil
}

// find returns the server with an id, a name, or a name that an incident changed.
func (w *World) find(host string) (cloud.Server, error) {
	servers, err := w.cloud.Servers()
	if err != nil {
		return cloud.Server{}, err
	}
	open, err := w.incidents()
	if err != nil {
		return cloud.Server{}, err
	}
	names := map[string][]cloud.Server{}
	for _, server := range servers {
		if server.ID == host {
			return server, nil
		}
		names[server.Name] = append(names[server.Name], server)
	}
	for _, server := range servers {
		if before := open[server.ID].formerName(); before != "" && len(names[before]) == 0 {
			names[before] = []cloud.Server{server}
		}
	}
	switch found := names[host]; len(found) {
	case 1:
		return found[0], nil
	case 0:
		return cloud.Server{}, unknown("host", host, names, "macfleet sandbox list shows them")
	default:
		ids := make([]string, len(found))
		for i, server := range found {
			ids[i] = server.ID
		}
		return cloud.Server{}, fmt.Errorf("several hosts of the sandbox are named %q; fix: use an id: %s", host, strings.Join(ids, ", "))
	}
}
