package scaleway

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/scaleway/scaleway-sdk-go/scw"

	"github.com/macfleet/macfleet/fleet/inventory"
)

// goneEvery is the time between the two lists that must both lack a server.
const goneEvery = 2 * time.Second

// listed is what this client's whole lists had, by zone.
type listed struct {
	lock  sync.Mutex
	zones map[scw.Zone]map[string]bool // server ids
}

// note keeps the servers of a whole list.
func (l *listed) note(zone scw.Zone, servers map[string]inventory.Server) {
	l.lock.Lock()
	defer l.lock.Unlock()
	if l.zones == nil {
		l.zones = make(map[scw.Zone]map[string]bool)
	}
	if l.zones[zone] == nil {
		l.zones[zone] = make(map[string]bool)
	}
	for id := range servers {
		l.zones[zone][id] = true
	}
}

// before returns the servers of a zone that this client has listed.
func (l *listed) before(zone scw.Zone) []string {
	l.lock.Lock()
	defer l.lock.Unlock()
	return slices.Sorted(maps.Keys(l.zones[zone]))
}

// Gone reports whether a server was deleted. Scaleway denies access to a deleted server as it does to a key without
// rights, so two whole lists of the project decide: both must lack it, and still have one of the other servers that
// this client has listed. An error means that it is unknown.
func (c *Client) Gone(ctx context.Context, zone, id string) (bool, error) {
	_, err := c.get(ctx, zone, id)
	switch inventory.ClassOf(err) {
	case inventory.Denied, inventory.NotFound:
	default:
		return false, err
	}
	before := c.listed.before(scw.Zone(zone))
	others := slices.DeleteFunc(slices.Clone(before), func(o string) bool { return o == id })
	for i := range 2 {
		if i > 0 {
			if err := c.pauses.Sleep(ctx, c.goneEvery); err != nil {
				return false, err
			}
		}
		servers, err := c.whole(ctx, scw.Zone(zone))
		if err != nil {
			return false, fmt.Errorf("check whether server %s still exists: list the servers of zone %s: %w", id, zone, err)
		}
		if _, there := servers[id]; there {
			return false, nil
		}
		if len(servers) == 0 && len(before) == 0 || len(others) > 0 && !slices.ContainsFunc(others, func(o string) bool { _, there := servers[o]; return there }) {
			return false, fmt.Errorf("check whether server %s still exists: zone %s of project %s lists no server that macfleet knows; "+
				"fix: check the API key and the project", id, zone, c.project)
		}
	}
	return true, nil
}
