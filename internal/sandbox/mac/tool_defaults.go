package mac

import (
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// defaultsCall is a command line of defaults.
type defaultsCall struct {
	currentHost bool
	verb        string
	domain, key string
	value       []string
}

func defaults(p *proc) int {
	call := defaultsCall{}
	args := p.args()
	if len(args) > 0 && args[0] == "-currentHost" {
		call.currentHost, args = true, args[1:]
	}
	if len(args) == 2 && args[0] == "read" {
		args = append(args, "") // the whole domain
	}
	if len(args) < 3 || strings.HasPrefix(args[1], "-") && args[1] != "-g" && args[1] != "-globalDomain" {
		return p.unmodelled(strings.Join(p.args(), " "))
	}
	call.verb, call.domain, call.key, call.value = args[0], args[1], args[2], args[3:]
	switch call.verb {
	case "read":
		if len(call.value) == 0 {
			return p.readDefault(call)
		}
	case "write":
		return p.writeDefault(call)
	case "delete":
		if len(call.value) == 0 {
			return p.changeDefault(call, nil)
		}
	}
	return p.unmodelled(strings.Join(p.args(), " "))
}

// file returns the file of a domain. cfprefsd uses the user, not HOME.
func (c defaultsCall) file(p *proc) string {
	switch folder := p.user.home + "/Library/Preferences"; {
	case path.IsAbs(c.domain):
		return strings.TrimSuffix(c.domain, ".plist") + ".plist"
	case c.currentHost:
		return folder + "/ByHost/" + c.name() + "." + p.session.id.HardwareUUID + ".plist"
	default:
		return folder + "/" + c.name() + ".plist"
	}
}

func (c defaultsCall) name() string {
	switch c.domain {
	case "NSGlobalDomain", "-g", "-globalDomain":
		return ".GlobalPreferences"
	}
	return c.domain
}

// complainLog writes a message as macOS's own logging does, with a line before it.
func (p *proc) complainLog(format string, args ...any) int {
	_, _ = fmt.Fprintf(p.stderr, "%s defaults[%d:%d] \n%s\n", p.shown().Format("2006-01-02 15:04:05.000"), 4242, 171717, fmt.Sprintf(format, args...))
	return exitFailed
}

func (p *proc) readDefault(call defaultsCall) int {
	var values map[string]any
	err := p.visit(func(v *visit) error {
		data, err := v.read(p, call.file(p))
		if err != nil {
			return err
		}
		values, err = decodePlist(data)
		return err
	})
	if call.key == "" {
		if err != nil || len(values) == 0 {
			return p.complainLog("Domain %s does not exist", call.domain)
		}
		p.printf("%s\n", plistText(values, ""))
		return 0
	}
	value, ok := values[call.key]
	if err != nil || !ok {
		// cfprefsd treats a missing or damaged file, or another user's, as a domain without keys.
		return p.complainLog("The domain/default pair of (%s, %s) does not exist", call.domain, call.key)
	}
	p.printf("%s\n", plistText(value, ""))
	return 0
}

func (p *proc) writeDefault(call defaultsCall) int {
	value, ok := defaultValue(call.value)
	if !ok {
		return p.unmodelled(strings.Join(p.args(), " "))
	}
	return p.changeDefault(call, value)
}

// defaultValue reads a value with the type of the command line.
func defaultValue(words []string) (any, bool) {
	if len(words) == 0 {
		return nil, false
	}
	kind, rest := words[0], words[1:]
	switch {
	case kind == "-dict-add" && len(rest) == 3: // one key with its type
		value, ok := defaultValue(rest[1:])
		return added{rest[0]: value}, ok
	case kind == "-array":
		list := make([]any, len(rest))
		for i, word := range rest {
			list[i] = word
		}
		return list, !slices.ContainsFunc(rest, func(word string) bool { return strings.HasPrefix(word, "-") })
	case len(words) == 1 && !strings.HasPrefix(kind, "-"):
		return kind, true
	case len(rest) != 1:
		return nil, false
	}
	switch kind {
	case "-string":
		return rest[0], true
	case "-int", "-integer":
		n, err := strconv.ParseInt(rest[0], 10, 64)
		return n, err == nil
	case "-float":
		f, err := strconv.ParseFloat(rest[0], 64)
		return f, err == nil
	case "-bool", "-boolean":
		switch strings.ToLower(rest[0]) {
		case "true", "yes", "1":
			return true, true
		case "false", "no", "0":
			return false, true
		}
	}
	return nil, false
}

// added are entries that are added to those of a dictionary.
type added map[string]any

// changeDefault writes a key, or deletes it if there is no value.
func (p *proc) changeDefault(call defaultsCall, value any) int {
	file := call.file(p)
	present := true
	err := p.visit(func(v *visit) error {
		folder := path.Dir(file)
		if !path.IsAbs(call.domain) {
			if err := v.mkdirAll(p, folder, 0o700); err != nil {
				return err
			}
		}
		if n, err := v.resolve(p.user, "/", folder, true); err != nil {
			return err
		} else if err := v.writable(p.user, n.path); err != nil {
			return err
		}
		values, err := v.readPlist(file)
		if err != nil {
			return err
		}
		if _, present = values[call.key]; value == nil {
			delete(values, call.key)
		} else if more, is := value.(added); is {
			into := maps.Clone(dict(values, call.key))
			if into == nil {
				into = map[string]any{}
			}
			maps.Copy(into, more)
			values[call.key] = into
		} else {
			values[call.key] = value
		}
		o := owner{p.user.uid, v.groupIn(folder), 0o600}
		if path.IsAbs(call.domain) {
			o.Mode = 0o644
		}
		return v.writePlist(file, values, o)
	})
	switch {
	case err != nil:
		return p.complainLog("Could not write domain %s; exiting", call.domain)
	case value == nil && !present:
		return p.complainLog("Domain (%s) not found.\nDefaults have not been changed.", call.domain)
	}
	return 0
}

var plainWord = regexp.MustCompile(`^[A-Za-z0-9_$]+$`)

// plistText formats a value as defaults does; indent is for the content of a list.
func plistText(value any, indent string) string {
	switch value := value.(type) {
	case bool:
		if value {
			return "1"
		}
		return "0"
	case string:
		if indent != "" && !plainWord.MatchString(value) {
			return strconv.Quote(value)
		}
		return value
	case []any:
		text := "(\n"
		for i, one := range value {
			text += indent + "    " + plistText(one, indent+"    ")
			if i+1 < len(value) {
				text += ","
			}
			text += "\n"
		}
		return text + indent + ")"
	case map[string]any:
		text := "{\n"
		for _, key := range sortedKeys(value) {
			text += indent + "    " + plistText(key, "    ") + " = " + plistText(value[key], indent+"    ") + ";\n"
		}
		return text + indent + "}"
	}
	return fmt.Sprint(value)
}

func sortedKeys(values map[string]any) []string {
	keys := make([]string, 0, len(values))
	for key := range values {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}

func updatesOn() ToolFault {
	const domain = "/Library/Preferences/com.apple.SoftwareUpdate"
	set := func(on string) string {
		return "for key in AutomaticCheckEnabled AutomaticDownload AutomaticallyInstallMacOSUpdates; do defaults write " + domain + " \"$key\" -bool " + on + "; done"
	}
	return ToolFault{Name: "updates-on", Summary: "someone turned macOS's automatic updates on",
		Cause: set("1"), Cure: set("0"), Shows: "defaults read " + domain, Text: "AutomaticallyInstallMacOSUpdates = 1"}
}
