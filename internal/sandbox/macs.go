package sandbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

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

	keys  []string // authorized keys that the provider put there at the last installation or restart
	lives mac.Lives
}

// factoryOf returns the factory values of a server, also of one that a person added.
func factoryOf(server cloud.Server) factory {
	hardware := digest("hardware " + server.ID)
	version := poolVersion
	if server.OS != nil {
		version = cmp.Or(server.OS.Version, poolVersion)
	}
	life := server.Life
	return factory{
		Name:         server.Name,
		Serial:       "H" + letters("serial "+server.ID, "ABCDEFGHJKLMNPQRSTUVWXYZ0123456789", 9),
		HardwareUUID: strings.ToUpper(cloud.FormatUUID([16]byte(hardware[:16]))),
		OSVersion:    version,
		OSBuild:      buildOf(version),
		User:         server.SSHUsername,
		Password:     cmp.Or(life.Password, server.SudoPassword),
		keys:         life.Keys,
		lives:        mac.Lives{Installs: life.Installs, Boots: life.Boots},
	}
}

// buildOf returns the build of a version of macOS. For a version without a known one it is made up.
func buildOf(version string) string {
	known := map[string]string{
		poolVersion: poolBuild, "13.6": "22G120", "14.6": "23G80", "15.2": "24C101", "15.3.1": "24D70", "15.6": "24G84", "26.0": "25A354",
	}
	major, _, _ := strings.Cut(version, ".")
	number, err := strconv.Atoi(major)
	if err != nil || number < 26 {
		return cmp.Or(known[version], poolBuild)
	}
	return cmp.Or(known[version], fmt.Sprintf("%dG%s", number-1, letters("build "+version, "123456789", 3)))
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
	if err := m.follow(place.machine, server); err != nil {
		return nil, fmt.Errorf("open the simulated Mac of %s: %w", server.Name, err)
	}
	return place.machine, nil
}

// enter opens a Mac, and creates it if it is missing.
func (m *macs) enter(server cloud.Server) (*mac.Machine, error) {
	dir := filepath.Join(m.dir, server.ID)
	if exists(dir) {
		return mac.Open(dir)
	}
	unlock, err := m.lock(server.ID)
	if err != nil {
		return nil, err
	}
	defer unlock()
	if exists(dir) {
		return mac.Open(dir)
	}
	own, err := m.factory(server)
	if err != nil {
		return nil, err
	}
	machine, err := mac.Create(dir, own.machine(server, m.settings))
	if err != nil || server.Life.Doing == "" {
		return machine, err
	}
	return machine, machine.SwitchOff(time.Until(server.Life.Until)) // the provider still works on it
}

// lock locks the creation and the reinstallation of a Mac against other processes.
func (m *macs) lock(id string) (unlock func(), err error) {
	return store.NewLocker(filepath.Join(m.dir, "."+id+".lock")).Lock()
}

// follow does to a Mac what the provider did to its server since the last time: a reinstallation, or
// restarts.
func (m *macs) follow(machine *mac.Machine, server cloud.Server) error {
	if server.Life.Installs == 0 && server.Life.Boots == 0 {
		return nil
	}
	if done, err := machine.Lives(); err != nil || done.Installs >= server.Life.Installs && done.Boots >= server.Life.Boots {
		return err
	}
	unlock, err := m.lock(server.ID)
	if err != nil {
		return err
	}
	defer unlock()
	done, err := machine.Lives()
	if err != nil {
		return err
	}
	down := max(0, time.Until(server.Life.Until))
	if done.Installs < server.Life.Installs {
		return m.reinstall(machine, server, down)
	}
	if done.Boots < server.Life.Boots {
		return machine.PowerCycle(context.Background(), down, server.Life.Boots, server.Life.Keys)
	}
	return nil
}

// reinstall wipes a Mac. What ran on it is gone for the cluster, too.
func (m *macs) reinstall(machine *mac.Machine, server cloud.Server, down time.Duration) error {
	own, err := m.factory(server)
	if err != nil {
		return err
	}
	if own.Serial, err = machine.Serial(); err != nil {
		return err
	}
	if err := machine.Reinstall(own.machine(server, m.settings), down); err != nil || m.outside == nil {
		return err
	}
	around := m.outside(server)
	return errors.Join(around.Kubelets(nil), around.Runners.Report(nil))
}

// machine returns the values of the Mac of a server.
func (own factory) machine(server cloud.Server, world settings) mac.Factory {
	keys := own.keys
	if own.lives == (mac.Lives{}) {
		keys = []string{world.SSHPublicKey}
	}
	return mac.Factory{
		Name:             own.Name,
		Serial:           own.Serial,
		HardwareUUID:     own.HardwareUUID,
		OSVersion:        own.OSVersion,
		OSBuild:          own.OSBuild,
		Type:             server.Type,
		User:             own.User,
		Password:         own.Password,
		AuthorizedKeys:   keys,
		PasswordlessSudo: world.PasswordlessSudo,
		Lives:            own.lives,
	}
}

// factory returns the values of a Mac at its last installation.
func (m *macs) factory(server cloud.Server) (factory, error) {
	known, err := m.factories()
	if err != nil {
		return factory{}, err
	}
	if own, ok := known[server.ID]; ok && server.Life.Installs == 0 {
		own.keys, own.lives = server.Life.Keys, mac.Lives{Boots: server.Life.Boots}
		return own, nil
	}
	return factoryOf(server), nil
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return !errors.Is(err, fs.ErrNotExist)
}
