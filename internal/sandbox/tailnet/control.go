package tailnet

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/macfleet/macfleet/internal/sandbox/agent"
)

// Mac is the control server for the daemon on one Mac. It does not use HTTP: the real protocol is Tailscale's own.
type Mac struct {
	server *Server
	id     string // of the Mac's server
}

// For returns the control server for the daemon on the Mac of a server.
func (s *Server) For(serverID string) Mac { return Mac{s, serverID} }

var _ agent.Control = Mac{}

// errUnreachable is what a daemon gets from a server that is down.
var errUnreachable = errors.New("fetch control key: Get \"/key?v=130\": context deadline exceeded")

// with changes the state for a daemon.
func (m Mac) with(do func(st *state, own Settings, now time.Time) error) error {
	return m.server.change(func(st *state, own Settings, now time.Time) error {
		if own.Down != 0 {
			return errUnreachable
		}
		return do(st, own, now)
	})
}

func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// Register makes a device with a key, or takes up the one of the node key.
func (m Mac) Register(r agent.NodeRegistration) (n agent.Node, err error) {
	err = m.with(func(st *state, own Settings, now time.Time) error {
		i := slices.IndexFunc(st.Devices, func(d Device) bool { return d.NodeKey == r.NodeKey || d.Machine == r.MachineKey })
		if r.AuthKey == "" {
			if i < 0 || st.Devices[i].NodeKey != r.NodeKey {
				return agent.RefusedNode{Text: "no login", Gone: true}
			}
			m.contact(&st.Devices[i], r.NodeContact, now)
			n = node(st.Devices[i], own, now)
			return nil
		}
		k, err := m.spend(st, r.AuthKey, now)
		if err != nil {
			return err
		}
		if i >= 0 && st.Devices[i].Suffix != k.Suffix { // a machine is another device in each tailnet
			st.Devices[i].Connected, st.Devices[i].Seen, i = false, now, -1
		}
		if m.server.options.Headscale && i >= 0 && st.Devices[i].expired(now) {
			return agent.RefusedNode{Text: "weird: regen=true but server says NodeKeyExpired: " + r.NodeKey}
		}
		if i < 0 {
			if own.Limit > 0 && len(st.Devices) >= own.Limit {
				return agent.RefusedNode{Text: "tailnet has reached its device limit"}
			}
			d := st.fresh(now)
			d.Suffix = k.Suffix
			st.Devices, i = append(st.Devices, d), len(st.Devices)
		}
		d := &st.Devices[i]
		d.Machine, d.Tags, d.Ephemeral = r.MachineKey, slices.Clone(k.Tags), k.Ephemeral
		d.Expires = time.Time{}
		if len(k.Tags) == 0 {
			d.Expires = now.Add(180 * 24 * time.Hour)
		}
		d.NeverKey = len(k.Tags) > 0
		d.NodeKey, d.Approved = r.NodeKey, !own.Approval || k.Preauthorized
		if d.HostName != r.HostName || d.Name == "" {
			d.HostName, d.Name = r.HostName, st.free(r.HostName, *d)
		}
		m.contact(d, r.NodeContact, now)
		n = node(*d, own, now)
		return nil
	})
	return n, err
}

// spend uses an auth key.
func (m Mac) spend(st *state, secret string, now time.Time) (Key, error) {
	i := slices.IndexFunc(st.Keys, func(k Key) bool { return k.Digest == digest(secret) })
	switch {
	case i < 0:
		return Key{}, agent.RefusedNode{Text: "invalid key: API key does not exist"}
	case st.Keys[i].Used && !st.Keys[i].Reusable:
		return Key{}, agent.RefusedNode{Text: "authkey already used"}
	case !st.Keys[i].Alive(now):
		return Key{}, agent.RefusedNode{Text: "invalid key: API key " + st.Keys[i].ID + " not valid"}
	}
	st.Keys[i].Used = true
	return st.Keys[i], nil
}

// free returns a name that no other device of its tailnet has: the wanted one, or one with a number.
func (st *state) free(want string, of Device) string {
	want = strings.ToLower(want)
	taken := func(name string) bool {
		return slices.ContainsFunc(st.Devices, func(d Device) bool { return d.ID != of.ID && d.Suffix == of.Suffix && strings.EqualFold(d.Name, name) })
	}
	name := want
	for n := 1; taken(name); n++ {
		name = fmt.Sprintf("%s-%d", want, n)
	}
	return name
}

// contact notes that a daemon is connected.
func (m Mac) contact(d *Device, c agent.NodeContact, now time.Time) {
	switch d.Server {
	case m.id, "":
		d.Server, d.Machine = m.id, c.MachineKey
	default: // a copy of its state runs on a second Mac
		if d.Second = m.id; !d.Connected {
			d.Server, d.Second = m.id, ""
		}
	}
	if !d.Connected || d.Version != c.Version {
		d.Seen = now
	}
	d.Connected, d.Version, d.OS = true, c.Version, c.OS
}

// node is a device as its daemon gets it.
func node(d Device, own Settings, now time.Time) agent.Node {
	n := agent.Node{ID: d.ID, Name: d.Name, Suffix: d.in(own), HostName: d.HostName, Addresses: d.Addresses, Tags: d.Tags, Approved: d.Approved,
		Expired: d.expired(now), Online: d.Connected, MagicDNS: !own.NoMagicDNS}
	if !d.NeverKey {
		n.KeyExpiry = d.Expires
	}
	return n
}

// Node returns the device of a node key. Unless the server pushes deletions, only a starting daemon learns of one.
func (m Mac) Node(c agent.NodeContact) (n agent.Node, err error) {
	err = m.with(func(st *state, own Settings, now time.Time) error {
		for i := range st.Devices {
			d := &st.Devices[i]
			if d.NodeKey != c.NodeKey {
				continue
			}
			m.contact(d, c, now)
			if c.HostName != "" && c.HostName != d.HostName {
				d.HostName, d.Name = c.HostName, st.free(c.HostName, *d)
			}
			n = node(*d, own, now)
			return nil
		}
		return agent.RefusedNode{Text: "node not found", Gone: true, Late: !own.Pushes}
	})
	return n, err
}

// Disconnect notes that the daemon on this Mac has ended.
func (m Mac) Disconnect(nodeKey string) error {
	return m.server.change(func(st *state, _ Settings, now time.Time) error {
		for i := range st.Devices {
			switch d := &st.Devices[i]; {
			case d.NodeKey != nodeKey:
			case d.Second == m.id:
				d.Second = ""
			case d.Second != "":
				d.Server, d.Second = d.Second, ""
			default:
				d.Connected, d.Seen = false, now
			}
		}
		return nil
	})
}

// Logout expires a node key. The device stays listed.
func (m Mac) Logout(nodeKey string) error {
	return m.with(func(st *state, _ Settings, now time.Time) error {
		for i := range st.Devices {
			if d := &st.Devices[i]; d.NodeKey == nodeKey {
				if d.Ephemeral {
					st.Devices = slices.Delete(st.Devices, i, i+1)
					return nil
				}
				d.Expires, d.NeverKey, d.Connected, d.Seen = now, false, false, now
			}
		}
		return nil
	})
}

// Peers are the other devices.
func (m Mac) Peers(nodeKey string) (all []agent.Node, err error) {
	err = m.with(func(st *state, own Settings, now time.Time) error {
		for _, d := range st.Devices {
			if d.NodeKey != nodeKey && d.Approved {
				all = append(all, node(d, own, now))
			}
		}
		return nil
	})
	return all, err
}

// Gone notes that the Mac was erased: its daemon never contacts the server again. Its device stays listed.
func (m Mac) Gone() error {
	return m.server.change(func(st *state, _ Settings, now time.Time) error {
		for i := range st.Devices {
			if d := &st.Devices[i]; d.Server == m.id && d.Connected {
				d.Connected, d.Seen = false, now
			}
		}
		return nil
	})
}
