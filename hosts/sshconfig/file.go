package sshconfig

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// line is a line of a file that says something.
type line struct {
	file    string
	number  int
	keyword string // of those we use, as the manual spells it
	args    []string
	files   [][]line // of an Include: what it brings in
}

// FaultError says that a file cannot be understood, and where.
type FaultError struct {
	File   string
	Line   int
	Why    string
	Remedy string
}

// Error names file, line, fault and remedy.
func (e *FaultError) Error() string {
	return fmt.Sprintf("%s:%d: %s; %s", e.File, e.Line, e.Why, e.Remedy)
}

func (l line) fault(remedy, why string, args ...any) error {
	return &FaultError{File: l.file, Line: l.number, Why: fmt.Sprintf(why, args...), Remedy: remedy}
}

// maxDepth is how deep files may include one another, as OpenSSH has it.
const maxDepth = 16

// maxSize is more than any ssh configuration needs. It keeps a device or a
// mistaken path from filling the memory.
const maxSize = 1 << 20

// reader reads files with what they include.
type reader struct {
	home string
	base string // relative names of Include start here
}

func (r reader) read(name string, depth int) ([]line, error) {
	info, err := os.Stat(name)
	if err == nil && info.IsDir() {
		err = &fs.PathError{Op: "read", Path: name, Err: errors.New("is a directory")}
	}
	if err == nil && info.Size() > maxSize {
		err = &fs.PathError{Op: "read", Path: name, Err: fmt.Errorf("larger than %d bytes", maxSize)}
	}
	if err != nil {
		return nil, err
	}
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	return r.parse(name, text, depth)
}

func (r reader) parse(name string, text []byte, depth int) ([]line, error) {
	var out []line
	scanner := bufio.NewScanner(bytes.NewReader(text))
	scanner.Buffer(nil, maxSize+1)
	for number := 1; scanner.Scan(); number++ {
		l := line{file: name, number: number}
		var err error
		if l.keyword, l.args, err = words(scanner.Text()); err != nil {
			return nil, l.fault("mend the line", "%s", err)
		}
		if l.keyword == "" {
			continue
		}
		if err := l.check(); err != nil {
			return nil, err
		}
		if l.keyword == "Include" {
			if l.files, err = r.include(l, depth+1); err != nil {
				return nil, err
			}
		}
		out = append(out, l)
	}
	return out, scanner.Err()
}

func (r reader) include(l line, depth int) ([][]line, error) {
	if depth > maxDepth {
		return nil, l.fault("remove the Include that leads back to its own file", "more than %d files include one another", maxDepth)
	}
	var out [][]line
	for _, pattern := range l.args {
		switch {
		case strings.HasPrefix(pattern, "~/"):
			pattern = filepath.Join(r.home, pattern[2:])
		case strings.HasPrefix(pattern, "~"), strings.ContainsAny(pattern, "%$"):
			return nil, l.fault("write the whole path", "macfleet does not expand %s", pattern)
		case !filepath.IsAbs(pattern):
			pattern = filepath.Join(r.base, pattern)
		}
		names, err := filepath.Glob(pattern)
		if err != nil {
			return nil, l.fault("mend the pattern", "Include %s: %s", pattern, err)
		}
		for _, name := range names {
			lines, err := r.read(name, depth)
			var fault *FaultError
			if err != nil && !errors.As(err, &fault) {
				return nil, l.fault("make the file readable, or remove the Include", "%s", err)
			} else if err != nil {
				return nil, err
			}
			out = append(out, lines)
		}
	}
	return out, nil
}

// keywords are those we use, as they are written in ssh's manual. What others
// say does not bear on how macfleet connects.
func keywords() []string {
	return append([]string{"Host", "Match", "Include", "ProxyCommand", "UserKnownHostsFile", "GlobalKnownHostsFile"}, single()...)
}

// single are the keywords with one value.
func single() []string {
	return []string{"HostName", "Port", "User", "IdentityFile", "IdentityAgent", "ProxyJump", "HostKeyAlias"}
}

// check finds what is wrong with a line by itself, and spells its keyword as the
// manual does.
func (l *line) check() error {
	i := slices.IndexFunc(keywords(), func(k string) bool { return strings.EqualFold(k, l.keyword) })
	if i < 0 {
		return nil
	}
	l.keyword = keywords()[i]
	switch {
	case len(l.args) == 0 || l.args[0] == "":
		return l.fault("give it a value, or remove the line", "%s has no value", l.keyword)
	case len(l.args) > 1 && slices.Contains(single(), l.keyword):
		return l.fault("put a value with blanks into quotes", "%s has more than one value", l.keyword)
	}
	switch l.keyword {
	case "Port":
		if _, ok := port(l.args[0]); !ok {
			return l.fault("write a number from 1 to 65535", "%q is no port", l.args[0])
		}
	case "ProxyJump":
		if _, err := parseJump(l.args[0]); err != nil {
			return l.fault(jumpForm, "ProxyJump %s: %s", l.args[0], err)
		}
	}
	return nil
}

const jumpForm = "write [USER@]HOST[:PORT], several separated by commas, or none"

func port(text string) (int, bool) {
	n, err := strconv.Atoi(text)
	return n, err == nil && n > 0 && n <= 65535
}
