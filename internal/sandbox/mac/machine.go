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

// Factory is a new machine's values.
type Factory struct {
	Name             string // the provider's name; the Mac itself does not know it
	Serial           string
	HardwareUUID     string
	OSVersion        string // such as 26.3
	OSBuild          string // such as 25D125
	Type             string // of the server, such as M2-L; "" = M2-M
	User             string // the login user, uid 501, an administrator
	Password         string
	AuthorizedKeys   []string // lines for ~/.ssh/scw_authorized_keys
	PasswordlessSudo bool
	Lives            Lives // what the provider did to the machine before
}

// Machine is a simulated Mac. It is safe for concurrent use, also by several processes on the same
// folder; it keeps no state and no descriptor between calls, except for the connections it serves, so
// that all of them can break at once.
type Machine struct {
	dir      string
	root     string // the folder of its files
	tools    map[string]tool
	bare     map[string]bool     // folders that may be missing on the disk
	programs map[string][]string // names of the system's programs, by folder

	// The mutex is taken before the file lock, so that goroutines wait in Go and not each in a system
	// call with its own thread. It guards known.
	mu    sync.Mutex
	known ledger

	settling      sync.Mutex // taken before mu, by the goroutine that runs what has become due
	power         power
	interruptions interruptions
	commands      commands
	records       records
	watcher       atomic.Pointer[func(argv []string, environ map[string]string)]
	outside       Outside
	witnesses     witnesses
	lines         lines
}

// identity is a Mac's identity, which is not on its disk.
type identity struct {
	Serial       string    `json:"serial"`
	HardwareUUID string    `json:"hardware_uuid"`
	OSVersion    string    `json:"os_version"`
	OSBuild      string    `json:"os_build"`
	Type         string    `json:"type,omitempty"`
	User         string    `json:"user"`
	Password     string    `json:"password"`
	Booted       time.Time `json:"booted"`
	Lives
}

// Create creates a machine in the folder dir, which must not exist. On an error it removes the folder.
func Create(dir string, f Factory) (*Machine, error) {
	if _, err := os.Lstat(dir); !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("create a machine in %s: %w", dir, errors.Join(fs.ErrExist, err))
	}
	if !validUser(f.User) {
		return nil, fmt.Errorf("create a machine in %s: %q can't be a login user's name", dir, f.User)
	}
	temp, err := os.MkdirTemp(filepath.Dir(dir), "."+filepath.Base(dir)+"-")
	if err != nil {
		return nil, fmt.Errorf("create a machine in %s: %w", dir, err)
	}
	if err = manufacture(temp, f); err == nil {
		err = os.Rename(temp, dir)
	}
	if err != nil {
		return nil, fmt.Errorf("create a machine in %s: %w", dir, errors.Join(err, os.RemoveAll(temp)))
	}
	return Open(dir)
}

// Open returns the machine in a folder that Create has created.
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

// Root returns the folder with the machine's files.
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

// Result is a script's output and exit status.
type Result struct {
	Stdout, Stderr []byte
	Exit           int
}

// Run runs a sh script on the machine as root or the login user, without SSH. The error is for a
// machine that cannot be used; the script's exit status is in the result.
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
