package mac

import (
	"fmt"
	"strconv"
	"strings"
)

const (
	macosSwitch    = "macos"
	macosInstalled = "installed"
)

// systemSwitches are those of the system itself.
func systemSwitches() []Switch {
	return []Switch{{macosSwitch, "the running macOS version: the installed one, or a version it was updated to", []string{macosInstalled, "VERSION"}}}
}

// osVersion returns the version of macOS that runs.
func (p *proc) osVersion() string {
	version := p.session.id.OSVersion
	_ = p.visit(func(v *visit) error { // if nothing can be read, nothing was set
		if set := v.switched(macosSwitch); set != macosInstalled {
			version = set
		}
		return nil
	})
	return version
}

func swVers(p *proc) int {
	id := p.session.id
	switch args := p.args(); {
	case len(args) == 0:
		p.printf("ProductName:\t\tmacOS\nProductVersion:\t\t%s\nBuildVersion:\t\t%s\n", p.osVersion(), id.OSBuild)
	case len(args) > 1:
		return p.unmodelled(strings.Join(args, " "))
	case args[0] == "-productVersion" || args[0] == "--productVersion":
		p.printf("%s\n", p.osVersion())
	case args[0] == "-buildVersion" || args[0] == "--buildVersion":
		p.printf("%s\n", id.OSBuild)
	case args[0] == "-productName" || args[0] == "--productName":
		p.printf("macOS\n")
	default:
		return p.unmodelled(args[0])
	}
	return 0
}

// darwin returns the kernel's version: from macOS 26 on its major number is one less.
func darwin(version string) string {
	major, rest, _ := strings.Cut(version, ".")
	minor, _, _ := strings.Cut(rest, ".")
	n, err := strconv.Atoi(major)
	if err != nil {
		return "25.0.0"
	}
	if n >= 26 {
		n--
	} else {
		n += 9
	}
	if minor == "" {
		minor = "0"
	}
	return fmt.Sprintf("%d.%s.0", n, minor)
}

func uname(p *proc) int {
	o, args, status, ok := p.options("asnrvmp")
	switch {
	case !ok:
		return status
	case len(args) > 0:
		return p.usage("uname [-amnoprsv]")
	}
	release := darwin(p.osVersion())
	node := p.child([]string{"hostname"})
	var name capture
	node.stdout = &name
	hostname(node)
	words := []struct {
		letter byte
		text   string
	}{
		{'s', "Darwin"}, {'n', strings.TrimSpace(string(name.bytes()))}, {'r', release},
		{'v', "Darwin Kernel Version " + release + ": root:xnu~1/RELEASE_ARM64_T8112"}, {'m', "arm64"}, {'p', "arm"},
	}
	var shown []string
	for _, w := range words {
		if o.has(w.letter) || o.has('a') && w.letter != 'p' || len(o) == 0 && w.letter == 's' {
			shown = append(shown, w.text)
		}
	}
	p.printf("%s\n", strings.Join(shown, " "))
	return 0
}

func ioreg(p *proc) int {
	if strings.Join(p.args(), " ") != "-rd1 -c IOPlatformExpertDevice" {
		return p.unmodelled(strings.Join(p.args(), " "))
	}
	p.printf(`+-o J473AP  <class IOPlatformExpertDevice, id 0x100000235, registered, matched, active, busy 0 (18208 ms), retain 41>
    {
      "IOPolledInterface" = "AppleARMWatchdogTimerHibernateHandler is not serializable"
      "#address-cells" = <02000000>
      "serial-number" = <%x>
      "IOBusyInterest" = "IOCommand is not serializable"
      "IOPlatformSerialNumber" = "%s"
      "platform-name" = <743831313200000000000000000000000000000000000000000000000000000000>
      "IOPlatformUUID" = "%s"
      "manufacturer" = <"Apple Inc.">
      "model" = <"%s">
    }

`, p.session.id.Serial, p.session.id.Serial, p.session.id.HardwareUUID, hardwareOf(p.session.id.Type).model)
	return 0
}

func sysctl(p *proc) int {
	o, names, status, ok := p.options("n")
	if !ok {
		return status
	}
	booted, own := p.session.booted(), hardwareOf(p.session.id.Type)
	cores := strconv.Itoa(own.cores)
	values := map[string]string{
		"hw.memsize": strconv.Itoa(own.memory << 30), "hw.ncpu": cores, "hw.model": own.model, "hw.physicalcpu": cores, "hw.logicalcpu": cores,
		"kern.boottime": fmt.Sprintf("{ sec = %d, usec = %d } %s", booted.Unix(), booted.Nanosecond()/1000, booted.Format("Mon Jan _2 15:04:05 2006")),
	}
	for _, name := range names {
		value, ok := values[name]
		switch {
		case !ok:
			status = p.fail(exitFailed, "unknown oid '%s'", name)
		case o.has('n'):
			p.printf("%s\n", value)
		default:
			p.printf("%s: %s\n", name, value)
		}
	}
	return status
}

// xattr is for files of which none has an attribute.
func xattr(p *proc) int {
	o, names, status, ok := p.options("p:d:rl")
	if !ok {
		return status
	}
	for _, name := range names {
		err := p.visit(func(v *visit) error {
			_, err := v.find(p.user, p.dir, name, true)
			return err
		})
		switch {
		case missing(err):
			status = p.fail(exitFailed, "No such file: %s", name)
		case err != nil:
			status = p.fail(exitFailed, "[Errno 13] %s: '%s'", why(err), name)
		case o.has('p') || o.has('d') && !o.has('r'):
			status = p.fail(exitFailed, "%s: No such xattr: %s", name, o['p']+o['d'])
		}
	}
	return status
}
