package mac

import (
	"bytes"
	"encoding/json"
	"os"
	"path"
	"strings"
	"syscall"

	"github.com/macfleet/macfleet/internal/sandbox/agent"
)

// Programs of GitHub's runner, as the line program= names them.
const (
	listenerProgram = "Runner.Listener"
	nodeProgram     = "node"
)

// The files of a configured runner, in its folder.
const (
	runnerFile      = ".runner"
	credentialsFile = ".credentials"
	keyFile         = ".credentials_rsaparams"
	serviceFile     = ".service"
	svcFile         = "svc.sh"
	migratedSuffix  = "_migrated"
)

// byteOrderMark is at the start of the runner's JSON files.
var byteOrderMark = []byte("\xef\xbb\xbf")

// runnerSettings is the file .runner. Empty fields are left out.
type runnerSettings struct {
	AgentID       int64  `json:"agentId,omitempty"`
	AgentName     string `json:"agentName,omitempty"`
	PoolID        int64  `json:"poolId,omitempty"`
	PoolName      string `json:"poolName,omitempty"`
	DisableUpdate bool   `json:"disableUpdate,omitempty"`
	Ephemeral     bool   `json:"ephemeral,omitempty"`
	ServerURL     string `json:"serverUrl,omitempty"`
	GitHubURL     string `json:"gitHubUrl,omitempty"`
	WorkFolder    string `json:"workFolder,omitempty"`
	V2Flow        bool   `json:"useV2Flow,omitempty"`
	ServerURLV2   string `json:"serverUrlV2,omitempty"`
}

// runnerCredentials is the file .credentials.
type runnerCredentials struct {
	Scheme string            `json:"scheme"`
	Data   map[string]string `json:"data"`
}

// runnerKey is the file .credentials_rsaparams.
type runnerKey struct {
	D        string `json:"d"`
	Exponent string `json:"exponent"`
	Modulus  string `json:"modulus"`
}

// runnerCall is a process of the runner in its folder.
type runnerCall struct {
	*proc
	root    string
	version string
}

// say prints a line.
func (c runnerCall) say(format string, args ...any) { c.printf(format+"\n", args...) }

func (c runnerCall) at(name string) string { return path.Join(c.root, name) }

// has reports whether a file of the runner exists.
func (c runnerCall) has(name string) (there bool) {
	_ = c.visit(func(v *visit) error { there = v.exists(c.at(name)); return nil }) // it is missing if it cannot be seen
	return there
}

// configured reports whether config.sh refuses to register the runner again.
func (c runnerCall) configured() bool { return c.has(runnerFile) || c.has(runnerFile+migratedSuffix) }

// load reads one of the runner's files.
func (c runnerCall) load(name string, into any) error {
	var data []byte
	err := c.visit(func(v *visit) (err error) {
		data, err = v.read(c.proc, c.at(name))
		return err
	})
	if err != nil {
		return err
	}
	return json.Unmarshal(bytes.TrimPrefix(data, byteOrderMark), into)
}

// newest reads a file, or the refreshed one that GitHub sent later.
func (c runnerCall) newest(name string, into any) error {
	if c.has(name + migratedSuffix) {
		return c.load(name+migratedSuffix, into)
	}
	return c.load(name, into)
}

// store writes one of the runner's files.
func (c runnerCall) store(name string, what any) error {
	data, err := json.MarshalIndent(what, "", "  ")
	if err != nil {
		return err
	}
	return c.write(name, append(bytes.Clone(byteOrderMark), data...), 0o644)
}

// write writes a file with the rights of the process.
func (c runnerCall) write(name string, data []byte, mode os.FileMode) error {
	return c.visit(func(v *visit) error { return v.writeAs(c.proc, c.at(name), data, os.O_TRUNC, mode) })
}

// writeAs writes a file with the rights of a process; the flag is os.O_TRUNC or os.O_APPEND.
func (v *visit) writeAs(p *proc, name string, data []byte, flag int, mode os.FileMode) error {
	file, err := v.openToWrite(p, name, os.O_WRONLY|os.O_CREATE|flag, mode)
	if err != nil {
		return err
	}
	_, err = file.Write(data)
	if failed := file.Close(); err == nil {
		err = failed
	}
	return err
}

// delete removes files of the runner; missing ones are skipped.
func (c runnerCall) delete(names ...string) error {
	for _, name := range names {
		err := c.visit(func(v *visit) error {
			n, err := v.resolve(c.user, c.dir, c.at(name), false)
			if err == syscall.ENOENT || err == nil && !n.exists() {
				return nil
			}
			if err != nil {
				return err
			}
			return v.removeAll(c.user, n)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// step is a point at which the runner's program can be killed: before a change. It reports whether the program runs on.
func (c runnerCall) step() bool { return c.faults.starting == nil || c.faults.starting(c.proc) }

// runListener is bin/Runner.Listener without launchd: it configures the runner or removes its configuration.
func (p *proc) runListener(name string, head []byte) int {
	c := runnerCall{p, path.Dir(path.Dir(p.absolute(name))), codeValue(head, "version")}
	p.watched()
	switch {
	case len(p.args()) > 0 && p.argv[1] == "--version":
		c.say("%s", c.version)
		return 0
	case len(p.args()) > 0 && p.argv[1] == "configure":
		return c.configure()
	case len(p.args()) > 0 && p.argv[1] == "remove":
		return c.unconfigure()
	}
	return p.unmodelled(strings.Join(p.args(), " "))
}

// absolute returns a path of the command line from the root.
func (p *proc) absolute(name string) string {
	if path.IsAbs(name) {
		return path.Clean(name)
	}
	return path.Join(p.dir, name)
}

// runners returns GitHub's service, or nil if the machine does not reach it.
func (p *proc) runners() agent.Runners { return p.session.machine.world().Runners }
