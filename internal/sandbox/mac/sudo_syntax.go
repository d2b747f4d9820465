package mac

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// sudoersEntry is one effective line of a sudo policy: a rule, or another file to read.
type sudoersEntry struct {
	rule         *sudoersRule
	file, folder string
}

// sudoersRule is who may run what, such as "m1 ALL = (ALL) NOPASSWD: ALL".
type sudoersRule struct {
	users, hosts, as []string
	commands         []sudoersCommand
}

type sudoersCommand struct {
	name string // ALL, a path with arguments, or an alias
	free bool   // without a password
}

// sudoersFault is the first invalid place of a policy file.
type sudoersFault struct{ line, column int }

func (f sudoersFault) String() string { return fmt.Sprintf("%d:%d", f.line, f.column) }

var (
	sudoersLine  = regexp.MustCompile(`^([^\s,=]+(?:\s*,\s*[^\s,=]+)*)\s+([^\s,=]+(?:\s*,\s*[^\s,=]+)*)\s*=\s*(?:\(([^)]*)\)\s*)?(.+)$`)
	sudoersWho   = regexp.MustCompile(`^!*(?:#[0-9]+|%?#?[A-Za-z0-9_][A-Za-z0-9_.-]*)$`)
	sudoersTag   = regexp.MustCompile(`^([A-Z_]+):\s*`)
	sudoersWhat  = regexp.MustCompile(`^!*\s*(?:[A-Z][A-Z0-9_]*|/\S.*|sudoedit(?:\s.+)?|list|sha(?:224|256|384|512):\S+\s+.+)$`)
	sudoersOther = regexp.MustCompile(`^(?:Defaults[@:!>\s].*\S|(?:User|Runas|Host|Cmnd|Cmd)_Alias\s+[A-Z][A-Z0-9_]*\s*=\s*\S.*)$`)
	sudoersMore  = regexp.MustCompile(`^[#@](include|includedir)\s+(\S.*)$`)
	sudoersNote  = regexp.MustCompile(`(?:^|\s)#(?:[^0-9].*)?$`)
)

// parseSudoers reads a policy file up to the first fault: sudo's treatment of the rest depends on the
// release.
func parseSudoers(text string) ([]sudoersEntry, *sudoersFault) {
	var entries []sudoersEntry
	number := 0
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	for len(lines) > 0 {
		line := lines[0]
		lines, number = lines[1:], number+1
		start := number
		for strings.HasSuffix(line, `\`) && len(lines) > 0 {
			line = strings.TrimSuffix(line, `\`) + lines[0]
			lines, number = lines[1:], number+1
		}
		entry, ok := parseSudoersLine(strings.TrimSpace(line))
		if !ok {
			return nil, &sudoersFault{start, len(line) + 1}
		}
		if entry != nil {
			entries = append(entries, *entry)
		}
	}
	return entries, nil
}

// parseSudoersLine returns nil for a line without an effect here.
func parseSudoersLine(line string) (entry *sudoersEntry, ok bool) {
	if m := sudoersMore.FindStringSubmatch(line); m != nil {
		place := strings.Trim(strings.TrimSpace(m[2]), `"`)
		if m[1] == "include" {
			return &sudoersEntry{file: place}, true
		}
		return &sudoersEntry{folder: place}, true
	}
	line = strings.TrimSpace(sudoersNote.ReplaceAllString(line, ""))
	if line == "" || sudoersOther.MatchString(line) {
		return nil, true
	}
	m := sudoersLine.FindStringSubmatch(line)
	if m == nil {
		return nil, false
	}
	commands, ok := parseSudoersCommands(m[4])
	users, _, _ := strings.Cut(m[3], ":")
	r := &sudoersRule{users: words(m[1]), hosts: words(m[2]), as: words(users), commands: commands}
	if len(r.as) == 0 {
		r.as = []string{"root"}
	}
	ok = ok && !slices.ContainsFunc(slices.Concat(r.users, r.hosts, r.as), func(who string) bool { return !sudoersWho.MatchString(who) })
	return &sudoersEntry{rule: r}, ok
}

// words returns the parts of a list.
func words(list string) []string {
	return strings.FieldsFunc(list, func(r rune) bool { return r == ',' || r == ' ' || r == '\t' })
}

// parseSudoersCommands reads the last part of a rule. A tag applies to all commands after it.
func parseSudoersCommands(text string) (commands []sudoersCommand, ok bool) {
	free := false
	for one := range strings.SplitSeq(text, ",") {
		one = strings.TrimSpace(one)
		for {
			m := sudoersTag.FindStringSubmatch(one)
			if m == nil {
				break
			}
			switch m[1] {
			case "NOPASSWD", "PASSWD":
				free = m[1] == "NOPASSWD"
			case "SETENV", "NOSETENV", "EXEC", "NOEXEC", "LOG_INPUT", "NOLOG_INPUT", "LOG_OUTPUT", "NOLOG_OUTPUT":
			default:
				return nil, false
			}
			one = one[len(m[0]):]
		}
		if !sudoersWhat.MatchString(one) {
			return nil, false
		}
		commands = append(commands, sudoersCommand{one, free})
	}
	return commands, true
}

// names reports whether a list includes a user: as ALL, by name, or by a group. The last match
// decides, and "!" negates it.
func names(list []string, who user) bool {
	found := false
	for _, word := range list {
		bare := strings.TrimLeft(word, "!")
		group, isGroup := strings.CutPrefix(bare, "%")
		number, isNumber := strings.CutPrefix(bare, "#")
		fits := bare == "ALL" || bare == who.name || isGroup && slices.Contains(groupNames(who), group)
		if isNumber {
			uid, ok := parseID(number)
			fits = ok && uid == who.uid
		}
		if fits {
			found = (len(word)-len(bare))%2 == 0
		}
	}
	return found
}
