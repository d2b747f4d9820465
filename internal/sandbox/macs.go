package sandbox

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/macfleet/macfleet/internal/sandbox/cloud"
	"github.com/macfleet/macfleet/internal/sandbox/mac"
	"github.com/macfleet/macfleet/internal/sandbox/store"
)

// factory is a Mac's state at delivery. It is separate from the server's record, because the two may
// differ: a password changed on the Mac leaves the record stale.
type factory struct {
	Name         string `json:"name"`
	Serial       string `json:"serial"`
	HardwareUUID string `json:"hardware_uuid"`
	OSVersion    string `json:"os_version"`
	OSBuild      string `json:"os_build"`
	User         string `json:"user"`
	Password     string `json:"password"`
}

// factoryOf returns the factory values of a server, also of one that a person added.
func factoryOf(server cloud.Server) factory {
	hardware := digest("hardware " + server.ID)
	version := poolVersion
	if server.OS != nil {
		version = cmp.Or(server.OS.Version, poolVersion)
	}
	return factory{
		Name:         server.Name,
		Serial:       "H" + letters("serial "+server.ID, "ABCDEFGHJKLMNPQRSTUVWXYZ0123456789", 9),
		HardwareUUID: strings.ToUpper(cloud.FormatUUID([16]byte(hardware[:16]))),
		OSVersion:    version,
		OSBuild:      poolBuild,
		User:         server.SSHUsername,
		Password:     server.SudoPassword,
	}
}

func factories(servers []cloud.Server) map[string]factory {
	made := make(map[string]factory, len(servers))
	for _, server := range servers {
		made[server.ID] = factoryOf(server)
	}
	return made
}

// macs opens the simulated Macs. Each one is created on first use, since most commands use few Macs of
// a big pool.
type macs struct {
	dir       string
	settings  settings
	factories func() (map[string]factory, error)
	outside   func(cloud.Server) mac.Outside // the world around each Mac

	mu   sync.Mutex
	open map[string]*slot
}

// slot holds one Mac of this process, opened on demand.
type slot struct {
	mu      sync.Mutex
	machine *mac.Machine
}

func newMacs(dir string, own settings) *macs {
	return &macs{
		dir:      filepath.Join(dir, macsFolder),
		settings: own,
		factories: sync.OnceValues(func() (map[string]factory, error) {
			var made map[string]factory
			err := store.ReadJSON(filepath.Join(dir, factoryFile), &made)
			return made, err
		}),
		open: map[string]*slot{},
	}
}

// get returns the Mac of a server.
func (m *macs) get(server cloud.Server) (*mac.Machine, error) {
	m.mu.Lock()
	place := m.open[server.ID]
	if place == nil {
		place = &slot{}
		m.open[server.ID] = place
	}
	m.mu.Unlock()
	place.mu.Lock()
	defer place.mu.Unlock()
	if place.machine == nil {
		machine, err := m.enter(server)
		if err != nil {
			return nil, fmt.Errorf("open the simulated Mac of %s: %w", server.Name, err)
		}
		if m.outside != nil {
			machine.Connect(m.outside(server))
			if err := machine.Announce(); err != nil {
				return nil, fmt.Errorf("open the simulated Mac of %s: %w", server.Name, err)
			}
		}
		place.machine = machine
	}
	return place.machine, nil
}

// enter opens a Mac, and creates it if it is missing. If another process creates it at the same time,
// one of the two is refused and opens a complete Mac.
func (m *macs) enter(server cloud.Server) (*mac.Machine, error) {
	dir := filepath.Join(m.dir, server.ID)
	if exists(dir) {
		return mac.Open(dir)
	}
	own, err := m.factory(server)
	if err != nil {
		return nil, err
	}
	machine, err := mac.Create(dir, mac.Factory{
		Name:             own.Name,
		Serial:           own.Serial,
		HardwareUUID:     own.HardwareUUID,
		OSVersion:        own.OSVersion,
		OSBuild:          own.OSBuild,
		Type:             server.Type,
		User:             own.User,
		Password:         own.Password,
		AuthorizedKeys:   []string{m.settings.SSHPublicKey},
		PasswordlessSudo: m.settings.PasswordlessSudo,
	})
	if err != nil && exists(dir) {
		return mac.Open(dir)
	}
	return machine, err
}

func (m *macs) factory(server cloud.Server) (factory, error) {
	known, err := m.factories()
	if err != nil {
		return factory{}, err
	}
	if own, ok := known[server.ID]; ok {
		return own, nil
	}
	return factoryOf(server), nil
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return !errors.Is(err, fs.ErrNotExist)
}
