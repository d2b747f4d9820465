package mac

import (
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"syscall"
	"time"
)

// tartInBundle is how the path of tart's program ends where it lies in its bundle.
const tartInBundle = "/tart.app/Contents/MacOS/tart"

// tartError is a failure with tart's own exit code.
type tartError struct {
	code int
	text string
}

// Error is what tart prints.
func (e tartError) Error() string { return e.text }

func noVM(name string) error {
	return tartError{2, fmt.Sprintf("the specified VM %q does not exist", name)}
}

// tartConfig is what tart keeps of a virtual machine beside its disk.
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

// tartHome is where tart keeps everything of the user that calls it.
func tartHome(p *proc) string {
	if home := p.env["TART_HOME"]; home != "" {
		return home
	}
	home := p.env["HOME"]
	if home == "" {
		home = p.user.home
	}
	return home + "/.tart"
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
		"list": c.list, "run": c.run, "stop": c.stop, "delete": c.remove, "clone": c.clone, "pull": c.pull, "set": c.set, "ip": c.ip, "push": c.push,
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

// sweep empties tart's folder for unfinished things, as every call of it does.
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

// folder is where a virtual machine lies, or an image out of a registry.
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

// make makes a virtual machine or an image with small files.
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
		_ = json.Unmarshal(data, &config) // a damaged one counts as a new one's
	}
	return config
}

// running gives the process of a virtual machine that runs.
func (v *visit) running(home, name string) (guest, bool, error) {
	all, err := v.guests()
	i := slices.IndexFunc(all, func(g guest) bool { return g.runs() && g.VM == name && g.Home == home })
	if i < 0 {
		return guest{}, false, err
	}
	return all[i], true, err
}

// run stays in the foreground until the virtual machine stops.
func (c tartCall) run(args []string) error {
	name := ""
	for _, arg := range args {
		switch {
		case arg == "--no-graphics" || arg == "--no-audio" || arg == "--no-clipboard" || strings.HasPrefix(arg, "--dir=") || strings.HasPrefix(arg, "--net-"):
		case strings.HasPrefix(arg, "-"):
			return usageError("Unknown option '" + arg + "'")
		default:
			name = arg
		}
	}
	if name == "" {
		return usageError("Missing expected argument '<name>'")
	}
	var started guest
	err := c.visit(func(v *visit) error {
		if _, err := v.vm(c.user, c.home, name); err != nil {
			return err
		}
		if err := v.entitled(c.program); err != nil {
			return err
		}
		var err error
		started, err = v.startGuest(c.user, c.home, name, append([]string{c.program, "run"}, args...))
		return err
	})
	if err != nil {
		return err
	}
	return c.wait(started)
}

// entitled reports whether a program may use Virtualization: that hangs on the whole bundle.
func (v *visit) entitled(program string) error {
	contents := strings.TrimSuffix(program, "/MacOS/tart")
	if strings.HasSuffix(program, tartInBundle) && v.exists(contents+"/embedded.provisionprofile") && v.exists(contents+"/_CodeSignature/CodeResources") {
		return nil
	}
	return errors.New(`Error Domain=VZErrorDomain Code=2 Description="Invalid virtual machine configuration. The process doesn’t have the “com.apple.security.virtualization” entitlement." UserInfo={NSLocalizedFailure=Invalid virtual machine configuration.}`)
}

// wait waits for a virtual machine to stop, or stops it when whoever started it ends.
func (c tartCall) wait(started guest) error {
	if c.under != nil {
		c.under.stay()
		return nil
	}
	same := func(g guest) bool { return g.PID == started.PID }
	for {
		select {
		case <-c.ctx.Done():
			return c.visit(func(v *visit) error { return v.endGuests(same) })
		case <-time.After(20 * time.Millisecond):
		}
		var all []guest
		err := c.visit(func(v *visit) (err error) {
			all, err = v.guests()
			return err
		})
		if err != nil || !slices.ContainsFunc(all, same) {
			return err
		}
	}
}

func (c tartCall) stop(args []string) error {
	args = withoutOption(args, "--timeout", "-t")
	if len(args) != 1 {
		return usageError("Missing expected argument '<name>'")
	}
	return c.visit(func(v *visit) error {
		if _, err := v.vm(c.user, c.home, args[0]); err != nil {
			return err
		}
		one, ok, err := v.running(c.home, args[0])
		if err == nil && !ok {
			err = tartError{2, fmt.Sprintf("VM %q is not running", args[0])}
		}
		if err != nil {
			return err
		}
		return v.endGuests(func(g guest) bool { return g.PID == one.PID })
	})
}

// withoutOption takes out an option with its value.
func withoutOption(args []string, names ...string) []string {
	args = slices.Clone(args)
	for i := 0; i < len(args); {
		name, _, given := strings.Cut(args[i], "=")
		switch {
		case !slices.Contains(names, name):
			i++
		case given || i+1 == len(args):
			args = slices.Delete(args, i, i+1)
		default:
			args = slices.Delete(args, i, i+2)
		}
	}
	return args
}

// remove deletes virtual machines, those that are just being pushed as well.
func (c tartCall) remove(names []string) error {
	if len(names) == 0 {
		return usageError("Missing expected argument '<name> ...'")
	}
	for _, name := range names {
		err := c.visit(func(v *visit) error {
			if strings.Contains(name, "/") {
				n, err := v.find(c.user, "/", c.folder(name), true)
				if err != nil {
					return noVM(name)
				}
				return v.removeAll(c.user, n)
			}
			n, err := v.vm(c.user, c.home, name)
			if err != nil {
				return err
			}
			if _, ok, err := v.running(c.home, name); err != nil || ok {
				return errors.Join(err, tartError{1, fmt.Sprintf("VM %q is running", name)})
			}
			return v.removeFiles(c.user, n)
		})
		if err != nil {
			return err
		}
	}
	return nil
}
