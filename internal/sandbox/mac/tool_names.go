package mac

import (
	"regexp"
	"strings"
)

const namesPlist = "/Library/Preferences/SystemConfiguration/preferences.plist"

// namePath returns the dictionaries of one of the Mac's own names.
func namePath(name string) ([]string, bool) {
	switch name {
	case "ComputerName", "HostName":
		return []string{"System", "System"}, true
	case "LocalHostName":
		return []string{"System", "Network", "HostNames"}, true
	}
	return nil, false
}

var localHostName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9-]{0,62}$`)

func scutil(p *proc) int {
	args := p.args()
	if len(args) == 0 {
		return p.dynamicStore()
	}
	if len(args) < 2 || len(args) > 3 {
		return p.unmodelled(strings.Join(args, " "))
	}
	path, ok := namePath(args[1])
	switch {
	case !ok:
		return p.unmodelled(strings.Join(args, " "))
	case args[0] == "--get" && len(args) == 2:
		name, err := p.macName(args[1])
		if err != nil || name == "" {
			// To scutil, a damaged file is one without settings.
			_, _ = p.stderr.Write([]byte(args[1] + ": not set\n"))
			return exitFailed
		}
		p.printf("%s\n", name)
		return 0
	case args[0] == "--set" && len(args) == 3:
		return p.setName(path, args[1], args[2])
	}
	return p.unmodelled(strings.Join(args, " "))
}

// macName returns one of the Mac's own names; "" if it is not set.
func (p *proc) macName(name string) (text string, err error) {
	err = p.visit(func(v *visit) error {
		text, err = v.macName(name)
		return err
	})
	return text, err
}

func (v *visit) macName(name string) (string, error) {
	values, err := v.readPlist(namesPlist)
	path, _ := namePath(name)
	for _, key := range path {
		values = dict(values, key)
	}
	text, _ := values[name].(string)
	return text, err
}

// hostName returns the machine's host name.
func (v *visit) hostName() (string, error) {
	name, err := v.macName("HostName")
	if err == nil && name == "" {
		if name, err = v.macName("LocalHostName"); name != "" {
			name += ".local"
		}
	}
	if err != nil || name == "" {
		name = "localhost"
	}
	return name, err
}

func (p *proc) setName(path []string, name, value string) int {
	refuse := func(reason string) int {
		_, _ = p.stderr.Write([]byte(name + ": " + reason + "\n"))
		return exitFailed
	}
	if p.user.uid != 0 {
		return refuse("This command requires elevated privileges")
	}
	if name == "LocalHostName" && value != "" && !localHostName.MatchString(value) {
		return refuse("invalid name: letters, digits and hyphens only")
	}
	err := p.visit(func(v *visit) error {
		values, err := v.readPlist(namesPlist)
		if err != nil {
			return err
		}
		inner := values
		for _, key := range path {
			next := dict(inner, key)
			inner[key] = next
			inner = next
		}
		if value == "" {
			delete(inner, name)
		} else {
			inner[name] = value
		}
		return v.writePlist(namesPlist, values, owner{Mode: 0o644})
	})
	if err != nil {
		return refuse("SCPreferences: " + why(err))
	}
	return 0
}

func hostname(p *proc) int {
	o, args, status, ok := p.options("sf")
	switch {
	case !ok:
		return status
	case len(args) > 0:
		return p.unmodelled(args[0])
	}
	var name string
	err := p.visit(func(v *visit) (err error) {
		name, err = v.hostName()
		return err
	})
	if err != nil {
		name = "localhost" // a damaged file is one without settings
	}
	if o.has('s') {
		name, _, _ = strings.Cut(name, ".")
	}
	p.printf("%s\n", name)
	return 0
}
