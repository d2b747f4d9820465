// Package tailnet simulates the control servers of tailnets: the part of Tailscale's API that concerns devices and auth
// keys, and what a daemon on a Mac exchanges with its control server, over a folder of JSON files that a person may edit.
package tailnet

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/macfleet/macfleet/internal/sandbox/store"
)

// Options describe the world around a control server.
type Options struct {
	Now func() time.Time // nil = time.Now
	// Runs reports whether the Mac of a server is switched on; nil = all are.
	Runs func(serverID string) bool
	// Headscale makes it one: without Tailscale's API, with its own keys.
	Headscale bool
}

// Server is a simulated control server. It is safe for concurrent use, also by several processes on one folder. It calls
// nothing of a Mac, so a Mac may call it with its own lock held.
type Server struct {
	dir     string
	options Options
	lock    *store.Locker
	mux     *http.ServeMux
}

// Names in the folder.
const (
	settingsFile = "settings.json"
	stateFile    = "state.json"
	lockFile     = "lock"
)

// New returns the control server over the state in dir, which it creates if it is missing.
func New(dir string, options Options) (*Server, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("create the sandbox's tailnet: %w", err)
	}
	if options.Now == nil {
		options.Now = time.Now
	}
	if options.Runs == nil {
		options.Runs = func(string) bool { return true }
	}
	s := &Server{dir: dir, options: options, lock: store.NewLocker(filepath.Join(dir, lockFile)), mux: http.NewServeMux()}
	s.routes()
	return s, nil
}

// Settings are how the control server behaves. A person creates their file; without it, each has its default.
type Settings struct {
	// Scopes are those of the credential; none = devices:core and auth_keys.
	Scopes []string `json:"scopes,omitempty"`
	// ClientTags are those of the credential; none = every tag is permitted.
	ClientTags []string `json:"client_tags,omitempty"`
	// TagOwners are the tags that own a tag, as in the policy.
	TagOwners map[string][]string `json:"tag_owners,omitempty"`
	// Revoked says that the credential is not accepted any more.
	Revoked bool `json:"revoked,omitempty"`
	// Approval says that new devices wait for an administrator.
	Approval bool `json:"approval,omitempty"`
	// NoMagicDNS says that names of devices do not resolve.
	NoMagicDNS bool `json:"no_magic_dns,omitempty"`
	// Suffix follows the names of devices; "" = tail1234.ts.net.
	Suffix string `json:"suffix,omitempty"`
	// Down is the status of every answer of the API; 0 = it works. Daemons do not reach the server either.
	Down int `json:"down,omitempty"`
	// NoKeyList says that the credential cannot list keys.
	NoKeyList bool `json:"no_key_list,omitempty"`
	// Pushes says that a running daemon learns at once that its device was deleted; the default is that it learns at its
	// next start.
	Pushes bool `json:"pushes,omitempty"`
	// Limit is how many devices may join; 0 = any number.
	Limit int `json:"limit,omitempty"`
	// ClientOf is the suffix of the tailnet whose the credential is; "" = the one that Suffix names. The API shows that tailnet only.
	ClientOf string `json:"client_of,omitempty"`
}

// listed is the suffix of the tailnet that the API shows.
func (own Settings) listed() string { return cmp.Or(own.ClientOf, own.Suffix) }

// state is what the server keeps.
type state struct {
	Devices []Device         `json:"devices"`
	Keys    []Key            `json:"keys"`
	Tokens  map[string]token `json:"tokens,omitempty"` // by digest
	Next    int              `json:"next"`             // number of the next device, key and address
}

// Device is a machine of the tailnet.
type Device struct {
	ID        string    `json:"id"`
	Name      string    `json:"name"` // first label of its MagicDNS name
	HostName  string    `json:"host_name"`
	Addresses []string  `json:"addresses"`
	Tags      []string  `json:"tags,omitempty"`
	Approved  bool      `json:"approved"`
	Expires   time.Time `json:"expires,omitzero"` // zero: never
	NeverKey  bool      `json:"key_expiry_disabled,omitempty"`
	Ephemeral bool      `json:"ephemeral,omitempty"`
	Machine   string    `json:"machine"`
	NodeKey   string    `json:"node_key"`
	Server    string    `json:"server,omitempty"` // id of the Mac's server
	Second    string    `json:"second,omitempty"` // another Mac that uses the same node key
	Connected bool      `json:"connected"`
	Seen      time.Time `json:"seen"`
	Version   string    `json:"version"`
	OS        string    `json:"os"`
	Created   time.Time `json:"created"`
	Suffix    string    `json:"suffix,omitempty"` // of its tailnet; "" = that of the settings
}

// in returns the suffix of the device's tailnet.
func (d Device) in(own Settings) string { return cmp.Or(d.Suffix, own.Suffix) }

// expired reports whether the device's node key has expired.
func (d Device) expired(now time.Time) bool {
	return !d.NeverKey && !d.Expires.IsZero() && !d.Expires.After(now)
}

// Key is an auth key. Its secret is kept as a digest.
type Key struct {
	ID            string    `json:"id"`
	Digest        string    `json:"digest"`
	Description   string    `json:"description"`
	Tags          []string  `json:"tags,omitempty"`
	Created       time.Time `json:"created"`
	Expires       time.Time `json:"expires"`
	Reusable      bool      `json:"reusable,omitempty"`
	Ephemeral     bool      `json:"ephemeral,omitempty"`
	Preauthorized bool      `json:"preauthorized,omitempty"`
	Revoked       time.Time `json:"revoked,omitzero"`
	Used          bool      `json:"used,omitempty"`
	Suffix        string    `json:"suffix,omitempty"` // of its tailnet; "" = that of the settings
}

// Alive reports whether a device can join with the key.
func (k Key) Alive(now time.Time) bool {
	return k.Revoked.IsZero() && k.Expires.After(now) && (k.Reusable || !k.Used)
}

func (s *Server) path(name string) string { return filepath.Join(s.dir, name) }

// settings reads the settings.
func (s *Server) settings() (Settings, error) {
	own := Settings{}
	err := store.ReadJSON(s.path(settingsFile), &own)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	if own.Suffix == "" {
		own.Suffix = "tail1234.ts.net"
	}
	return own, err
}

// Settings returns how the server behaves.
func (s *Server) Settings() (Settings, error) {
	unlock, err := s.lock.Lock()
	if err != nil {
		return Settings{}, err
	}
	defer unlock()
	return s.settings()
}

// Set changes how the server behaves.
func (s *Server) Set(change func(*Settings)) error {
	unlock, err := s.lock.Lock()
	if err != nil {
		return err
	}
	defer unlock()
	var own Settings
	if err := store.ReadJSON(s.path(settingsFile), &own); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	change(&own)
	return store.WriteJSON(s.path(settingsFile), own)
}

func (s *Server) load() (*state, error) {
	st := &state{Next: 11}
	err := store.ReadJSON(s.path(stateFile), st)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	if st.Tokens == nil {
		st.Tokens = map[string]token{}
	}
	return st, err
}

// change reads the state, changes it and stores it.
func (s *Server) change(do func(st *state, own Settings, now time.Time) error) error {
	unlock, err := s.lock.Lock()
	if err != nil {
		return err
	}
	defer unlock()
	own, err := s.settings()
	if err != nil {
		return err
	}
	st, err := s.load()
	if err != nil {
		return err
	}
	before, err := store.Encode(st)
	if err != nil {
		return err
	}
	if err := do(st, own, s.options.Now()); err != nil {
		return err
	}
	after, err := store.Encode(st)
	if err != nil || bytes.Equal(before, after) {
		return err
	}
	return store.WriteFile(s.path(stateFile), after)
}

// Devices returns all devices, in the order in which they joined.
func (s *Server) Devices() (all []Device, err error) {
	err = s.change(func(st *state, _ Settings, _ time.Time) error { all = st.Devices; return nil })
	return all, err
}

// Keys returns the auth keys that still work.
func (s *Server) Keys() (all []Key, err error) {
	err = s.change(func(st *state, _ Settings, now time.Time) error {
		for _, k := range st.Keys {
			if k.Alive(now) {
				all = append(all, k)
			}
		}
		return nil
	})
	return all, err
}

// Edit changes the device of a name as a person does in the admin console; nil from change deletes it. It fails if there is
// no such device.
func (s *Server) Edit(name string, change func(Device) *Device) error {
	return s.change(func(st *state, _ Settings, _ time.Time) error {
		for i, d := range st.Devices {
			if d.Name != name {
				continue
			}
			if edited := change(d); edited != nil {
				st.Devices[i] = *edited
			} else {
				st.Devices = append(st.Devices[:i:i], st.Devices[i+1:]...)
			}
			return nil
		}
		return fmt.Errorf("the tailnet has no device %s", name)
	})
}

// Add adds a device that is no Mac of this world.
func (s *Server) Add(name string, tags ...string) error {
	return s.change(func(st *state, _ Settings, now time.Time) error {
		d := st.fresh(now)
		d.Name, d.HostName, d.Tags, d.Approved, d.Connected, d.OS, d.NeverKey = name, name, tags, true, true, "linux", len(tags) > 0
		st.Devices = append(st.Devices, d)
		return nil
	})
}

// Another lets the API's credential be one of another tailnet, which has one device; "" takes it back.
func (s *Server) Another(suffix string) error {
	if err := s.Set(func(own *Settings) { own.ClientOf = suffix }); err != nil || suffix == "" {
		return err
	}
	return s.change(func(st *state, _ Settings, now time.Time) error {
		d := st.fresh(now)
		d.Name, d.HostName, d.Approved, d.Connected, d.OS, d.Suffix = "laptop", "laptop", true, true, "macOS", suffix
		st.Devices = append(st.Devices, d)
		return nil
	})
}

// fresh returns a device with a new id and addresses.
func (st *state) fresh(now time.Time) Device {
	n := st.Next
	st.Next++
	return Device{ID: fmt.Sprintf("nSandbox%dCNTRL", n), Addresses: []string{fmt.Sprintf("100.101.%d.%d", n/250, n%250+1), fmt.Sprintf("fd7a:115c:a1e0::%x", n)},
		Created: now, Seen: now, Machine: fmt.Sprintf("mkey:%d", n), NodeKey: fmt.Sprintf("nodekey:outside-%d", n)}
}

// maxBody is far above what any request of this API needs.
const maxBody = 1 << 20

func read(r *http.Request, into any) *failure {
	data, err := io.ReadAll(io.LimitReader(r.Body, maxBody))
	if err != nil {
		return &failure{http.StatusBadRequest, "reading request body: " + err.Error()}
	}
	if err := json.Unmarshal(data, into); err != nil {
		return &failure{http.StatusBadRequest, "invalid JSON: " + err.Error()}
	}
	return nil
}

// Restore returns a device to what it was, and removes another one with its name.
func (s *Server) Restore(d Device) error {
	return s.change(func(st *state, _ Settings, _ time.Time) error {
		var out []Device
		for _, one := range st.Devices {
			if one.ID != d.ID && one.Name != d.Name {
				out = append(out, one)
			}
		}
		st.Devices = append(out, d)
		return nil
	})
}

// Filler begins the names of the devices that Fill adds.
const Filler = "other-"

// Fill makes n devices with a tag that are no Macs, instead of those that it made before.
func (s *Server) Fill(n int) error {
	return s.change(func(st *state, _ Settings, now time.Time) error {
		st.Devices = slices.DeleteFunc(st.Devices, func(d Device) bool { return strings.HasPrefix(d.Name, Filler) })
		for i := range n {
			d := st.fresh(now)
			d.Name = fmt.Sprintf("%s%02d", Filler, i+1)
			d.HostName, d.Tags, d.Approved, d.Connected, d.OS, d.NeverKey = d.Name, []string{"tag:other"}, true, true, "linux", true
			st.Devices = append(st.Devices, d)
		}
		return nil
	})
}
