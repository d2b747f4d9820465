package mac

import (
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"strings"
	"syscall"
)

// tartInBundle is the end of the path of tart's program in its bundle.
const tartInBundle = "/tart.app/Contents/MacOS/tart"

// tartError is a failure with tart's exit code.
type tartError struct {
	code int
	text string
}

// Error returns tart's output.
func (e tartError) Error() string { return e.text }

func noVM(name string) error {
	return tartError{2, fmt.Sprintf("the specified VM %q does not exist", name)}
}

// tartConfig is tart's file about a virtual machine next to its disk.
type tartConfig struct {
	Version  int    `json:"version"`
	OS       string `json:"os"`
	Arch     string `json:"arch"`
	CPUCount int    `json:"cpuCount"`
	Memory   int64  `json:"memorySize"`
	DiskGB   int    `json:"diskSizeGB"`
}

// tartCall is a call of tart.
type tartCall struct {
	*proc
	program string
	home    string
}

// tartHome is the folder for everything of the user that tart runs as: tart reads the user database
// and not HOME, which sudo keeps.
func tartHome(p *proc) string {
	if home := p.env["TART_HOME"]; home != "" {
		return home
	}
	return p.user.home + "/.tart"
}

func (p *proc) tart(name string, head []byte) int {
	c := tartCall{p, name, tartHome(p)}
	if len(p.args()) == 0 {
		return p.usage("tart <subcommand>")
	}
	if p.argv[1] == "--version" {
		p.printf("%s\n", codeValue(head, "version"))
		return 0
	}
	commands := map[string]func([]string) error{
		"list": c.list, "run": c.run, "stop": c.stop, "delete": c.remove, "clone": c.clone, "pull": c.pull, "set": c.set, "ip": c.ip, "push": c.push, "prune": c.prune,
	}
	command, ok := commands[p.argv[1]]
	if !ok {
		return p.unmodelled(p.argv[1])
	}
	err := c.sweep()
	if err == nil {
		err = command(p.argv[2:])
	}
	var own tartError
	var number syscall.Errno
	switch {
	case err == nil:
		return 0
	case errors.As(err, &own):
		c.complainPlain(own.text)
		return own.code
	case errors.As(err, &number):
		c.complainPlain(why(err))
		return exitFailed
	}
	c.complainPlain(err.Error())
	return exitFailed
}

func (c tartCall) complainPlain(text string) { _, _ = c.stderr.Write([]byte(text + "\n")) }

// usageError is how tart refuses a command line.
func usageError(text string) error { return tartError{64, "Error: " + text} }

// sweep empties tart's folder for unfinished files, as every call of it does.
func (c tartCall) sweep() error {
	return c.visit(func(v *visit) error {
		n, err := v.find(c.user, "/", c.home+"/tmp", true)
		if err != nil {
			return nil // there is none
		}
		children, err := v.list(c.user, n)
		for _, child := range children {
			err = errors.Join(err, v.removeAll(c.user, child))
		}
		return err
	})
}

// folder returns the folder of a virtual machine, or of an image from a registry.
func (c tartCall) folder(name string) string {
	if strings.Contains(name, "/") {
		return c.home + "/cache/OCIs/" + strings.ReplaceAll(name, ":", "/")
	}
	return c.home + "/vms/" + name
}

// vm finds a local virtual machine.
func (v *visit) vm(who user, home, name string) (node, error) {
	n, err := v.find(who, "/", home+"/vms/"+name, true)
	if missing(err) || err == nil && (name == "" || strings.Contains(name, "/")) {
		return n, noVM(name)
	}
	return n, err
}

// make creates a virtual machine or an image with small files.
func (c tartCall) make(v *visit, name string, config tartConfig) error {
	data, err := json.MarshalIndent(config, "", "  ")
	if err != nil {
		return err
	}
	folder := c.folder(name)
	if err := v.mkdirAll(c.proc, folder, 0o755); err != nil {
		return err
	}
	for file, text := range map[string][]byte{"config.json": append(data, '\n'), "disk.img": []byte("disk of " + path.Base(name) + "\n"), "nvram.bin": []byte("nvram\n")} {
		n, err := v.resolve(c.user, "/", folder+"/"+file, true)
		if err == nil {
			err = v.replace(n, text, owner{c.user.uid, c.user.groups[0], 0o644})
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func newVM() tartConfig {
	return tartConfig{Version: 1, OS: "darwin", Arch: "arm64", CPUCount: 4, Memory: 8 << 30, DiskGB: 50}
}

func (v *visit) vmConfig(p *proc, folder string) tartConfig {
	config := newVM()
	if data, err := v.read(p, folder+"/config.json"); err == nil {
		_ = json.Unmarshal(data, &config) // a damaged one counts as new
	}
	return config
}
