package mac

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"
)

// Names in a machine's folder.
const (
	rootFolder   = "root"
	ledgerFile   = "meta.json"
	identityFile = "machine.json"
	hostKeyFile  = "ssh_host_ed25519_key"
	lockFile     = "lock"
)

// Factory is what a machine is made with.
type Factory struct {
	Name             string // what the provider calls it; the Mac itself does not know
	Serial           string
	HardwareUUID     string
	OSVersion        string // such as 26.3
	OSBuild          string // such as 25D125
	Type             string // of the server, such as M2-L; "" = M2-M
	User             string // the login user, uid 501, an administrator
	Password         string
	AuthorizedKeys   []string // lines for ~/.ssh/scw_authorized_keys
	PasswordlessSudo bool
}

// Machine is a simulated Mac. It is safe for concurrent use, also by several processes on the same
// folder; it holds no state and no descriptor between calls.
// While it serves connections it knows them, so that all of them can break at once.
type Machine struct {
	dir      string
	root     string // the folder of its files
	tools    map[string]tool
	bare     map[string]bool     // folders that may be missing on the disk
	programs map[string][]string // names of the system's programs, by their folder

	// The mutex is taken before the file lock, so that goroutines wait in Go and not each in a
	// system call with a thread of its own. It guards known.
	mu    sync.Mutex
	known ledger

	settling sync.Mutex // taken before mu, by the goroutine that runs what has become due
	power    power
	strikes  strikes
	commands commands
	records  records
	watcher  atomic.Pointer[func(argv []string, environ map[string]string)]
	outside  Outside
	lines    lines
}

// identity is what a Mac is, as opposed to what is on its disk.
type identity struct {
	Serial       string    `json:"serial"`
	HardwareUUID string    `json:"hardware_uuid"`
	OSVersion    string    `json:"os_version"`
	OSBuild      string    `json:"os_build"`
	Type         string    `json:"type,omitempty"`
	User         string    `json:"user"`
	Password     string    `json:"password"`
	Booted       time.Time `json:"booted"`
}

// Create creates a machine in the folder dir, which must not exist yet. A machine that can't be
// made whole leaves no folder behind.
func Create(dir string, f Factory) (*Machine, error) {
	if _, err := os.Lstat(dir); !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("make a machine in %s: %w", dir, errors.Join(fs.ErrExist, err))
	}
	if !validUser(f.User) {
		return nil, fmt.Errorf("make a machine in %s: %q can't be a login user's name", dir, f.User)
	}
	temp, err := os.MkdirTemp(filepath.Dir(dir), "."+filepath.Base(dir)+"-")
	if err != nil {
		return nil, fmt.Errorf("make a machine in %s: %w", dir, err)
	}
	if err = manufacture(temp, f); err == nil {
		err = os.Rename(temp, dir)
	}
	if err != nil {
		return nil, fmt.Errorf("make a machine in %s: %w", dir, errors.Join(err, os.RemoveAll(temp)))
	}
	return Open(dir)
}

// Open returns the machine of a folder that Create has made.
func Open(dir string) (*Machine, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("open the machine in %s: %w", dir, err)
	}
	m := &Machine{dir: dir, root: filepath.Join(dir, rootFolder), tools: everyTool(), programs: toolNames(), bare: everyBare()}
	if _, err := m.identity(); err != nil {
		return nil, fmt.Errorf("open the machine in %s: %w", dir, err)
	}
	return m, nil
}

// Root returns the folder that holds the machine's files.
func (m *Machine) Root() string { return m.root }

func (m *Machine) identity() (identity, error) {
	var id identity
	known, err := decoded[identity](m, identityFile, json.Unmarshal)
	if err != nil {
		return id, err
	}
	if known == nil {
		return id, &fs.PathError{Op: "open", Path: filepath.Join(m.dir, identityFile), Err: fs.ErrNotExist}
	}
	id = *known
	if !validUser(id.User) {
		return id, fmt.Errorf("%s: %q can't be a login user's name", identityFile, id.User)
	}
	return id, nil
}

// Result is what a script printed and how it ended.
type Result struct {
	Stdout, Stderr []byte
	Exit           int
}

// Run runs a sh script on the machine as root or the login user, past SSH. The error is for a
// machine that can't be used; how the script ended is in the result.
func (m *Machine) Run(ctx context.Context, user, script string) (Result, error) {
	s, err := m.session()
	if err != nil {
		return Result{}, err
	}
	defer s.close()
	who, ok := s.user(user)
	if !ok {
		return Result{}, fmt.Errorf("run a script on the machine in %s: it has no user %q", m.dir, user)
	}
	if err := s.settle(ctx); err != nil {
		return Result{}, fmt.Errorf("run a script on the machine in %s: %w", m.dir, err)
	}
	stdout, stderr := &capture{}, &capture{}
	exit := s.start(ctx, who, []string{"/bin/sh", "-c", script}, Faults{}, nil, stdout, stderr)
	if err := ctx.Err(); err != nil {
		return Result{}, fmt.Errorf("run a script on the machine in %s: %w", m.dir, err)
	}
	return Result{stdout.bytes(), stderr.bytes(), exit}, nil
}
