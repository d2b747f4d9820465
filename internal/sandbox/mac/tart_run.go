package mac

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// running returns the process of a running virtual machine.
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
		started, err = v.startGuest(c.user, c.home, name, append([]string{c.program, "run"}, args...), nil)
		return err
	})
	if err != nil {
		return err
	}
	return c.wait(started)
}

// entitled reports whether a program may use Virtualization: that depends on the whole bundle, and on
// its original signature.
func (v *visit) entitled(program string) error {
	contents := strings.TrimSuffix(program, "/MacOS/tart")
	whole := strings.HasSuffix(program, tartInBundle) && v.exists(contents+"/embedded.provisionprofile")
	if n, err := v.find(v.session.users()[0], "/", program, true); whole && err == nil {
		head, err := v.code(n)
		if err != nil {
			return err
		}
		if rights(head) && (hasLine(head, unsealedLine) || v.exists(contents+"/_CodeSignature/CodeResources")) {
			return nil
		}
	}
	return errors.New(`Error Domain=VZErrorDomain Code=2 Description="Invalid virtual machine configuration. The process doesn’t have the “com.apple.security.virtualization” entitlement." UserInfo={NSLocalizedFailure=Invalid virtual machine configuration.}`)
}

// rights reports whether a program's signature lets it run virtual machines.
func rights(head []byte) bool {
	return !hasLine(head, signatureLine) && codeValue(head, "entitlements") != "none"
}

// wait waits for a virtual machine to stop, or stops it when the process that started it ends.
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
	return c.ofRunning(args, tartError{2, fmt.Sprintf("VM %q is not running", strings.Join(args, " "))}, func(v *visit, one guest) error {
		return v.endGuests(func(g guest) bool { return g.PID == one.PID })
	})
}

// ofRunning calls a function with the one virtual machine that args name. It fails if that one does
// not run.
func (c tartCall) ofRunning(args []string, stopped error, do func(*visit, guest) error) error {
	if len(args) != 1 {
		return usageError("Missing expected argument '<name>'")
	}
	return c.visit(func(v *visit) error {
		if _, err := v.vm(c.user, c.home, args[0]); err != nil {
			return err
		}
		one, ok, err := v.running(c.home, args[0])
		if err == nil && !ok {
			err = stopped
		}
		if err != nil {
			return err
		}
		return do(v, one)
	})
}

// withoutOption removes an option with its value.
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

// remove deletes virtual machines, even while they are pushed.
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
