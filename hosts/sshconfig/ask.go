package sshconfig

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
)

// ErrNoSSH reports that this machine has no ssh.
var ErrNoSSH = errors.New("ssh is not installed")

// Config looks up names with ssh, once for names that match the same patterns.
type Config struct {
	file     string   // replaces ssh's own files; empty: use these
	patterns []string // patterns of all Host lines
	each     bool     // more than Host lines depends on the name: look up each name
	running  chan struct{}
	asked    sync.Map // a func() (answer, error) by user and class of names
}

// atOnce limits concurrent ssh processes, and patience the time of one: a Match exec may run
// any program.
const (
	atOnce   = 8
	patience = 20 * time.Second
)

// anyMachine is a name that no machine has: its settings apply to all machines.
const anyMachine = "no-machine-has-this-name"

// askable matches names that ssh accepts as a host. Others, such as names with blanks, get the
// settings of all machines.
var askable = regexp.MustCompile(`^[\w.:][\w.:-]*$`)

// Read checks the configuration (file, or ssh's own files if empty) and collects its patterns.
// The error is ErrNoSSH, or has ssh's message.
func Read(file string) (*Config, error) {
	if info, err := os.Stat(file); err == nil && info.IsDir() { // ssh would treat it as an empty file
		return nil, fmt.Errorf("%s is a directory", file)
	}
	c := &Config{file: file, running: make(chan struct{}, atOnce)}
	_, told, err := c.run("-v", "--", anyMachine)
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(told) {
		if _, name, ok := strings.Cut(strings.TrimSpace(line), "debug1: Reading configuration data "); ok {
			c.scan(name)
		}
	}
	return c, nil
}

// scan collects the Host patterns of a file.
func (c *Config) scan(file string) {
	text, err := os.ReadFile(file)
	c.each = c.each || err != nil || bytes.Contains(text, []byte("%C")) // a hash of the name
	for line := range strings.Lines(string(text)) {
		words := strings.Fields(strings.Replace(line, "=", " ", 1))
		if len(words) == 0 {
			continue
		}
		rest := strings.ToLower(strings.Join(words[1:], " "))
		switch strings.ToLower(strings.Trim(words[0], `"`)) {
		case "host":
			c.each = c.each || strings.ContainsAny(rest, `"'\[`)
			c.patterns = append(c.patterns, words[1:]...)
		case "match":
			c.each = c.each || !slices.Contains([]string{"all", "final all", "canonical all"}, rest)
		case "include":
			c.each = c.each || strings.ContainsAny(rest, "%$")
		}
	}
}

// class is equal for names that match the same patterns.
func (c *Config) class(name string) string {
	if c.each {
		return name
	}
	var fits strings.Builder
	for _, p := range c.patterns {
		ok, _ := path.Match(strings.TrimPrefix(p, "!"), name) // a malformed pattern matches nothing
		fmt.Fprintf(&fits, "%t ", ok)
	}
	return fits.String()
}

// answer is ssh's output for a name.
type answer struct {
	name   string              // the name that was looked up
	values map[string][]string // by keyword
}

func (a answer) first(keyword string) string {
	return append(slices.Clone(a.values[keyword]), "")[0]
}

// selfOnly reports whether the answer contains the name itself, so that it does not fit other
// names of its class.
func (a answer) selfOnly() bool {
	for _, values := range a.values {
		for _, v := range values {
			if strings.Contains(strings.ToLower(v), strings.ToLower(a.name)) {
				return true
			}
		}
	}
	return false
}

// answer returns ssh's output for a name, or for another name of its class.
func (c *Config) answer(user, name string) (answer, error) {
	if !askable.MatchString(name) {
		name = anyMachine
	}
	a, err := c.once(user, name, user+" "+c.class(name))
	if err == nil && a.name != name && a.selfOnly() {
		return c.once(user, name, user+"\n"+name)
	}
	return a, err
}

// once runs ssh once per key.
func (c *Config) once(user, name, key string) (answer, error) {
	ask, _ := c.asked.LoadOrStore(key, sync.OnceValues(func() (answer, error) {
		args := []string{"--", name}
		if user != "" {
			args = []string{"-l", user, "--", name}
		}
		out, _, err := c.run(args...)
		return parse(name, out), err
	}))
	return ask.(func() (answer, error))()
}

// keywords are the relevant keywords, spelled as in ssh's manual.
var keywords = []string{"HostName", "Port", "User", "HostKeyAlias", "IdentityAgent", "IdentityFile", "ProxyJump", "ProxyCommand", "UserKnownHostsFile", "GlobalKnownHostsFile"}

// parse parses the output of ssh -G for a name.
func parse(name, text string) answer {
	a := answer{name: name, values: make(map[string][]string)}
	for line := range strings.Lines(text) {
		keyword, value, _ := strings.Cut(strings.TrimRight(line, "\r\n"), " ")
		i := slices.IndexFunc(keywords, func(k string) bool { return strings.EqualFold(k, keyword) })
		if i < 0 {
			continue
		}
		switch keyword = keywords[i]; keyword {
		case "HostName":
			value = strings.Trim(value, "[]")
			if strings.EqualFold(value, name) { // not set
				continue
			}
		case "ProxyJump", "ProxyCommand", "IdentityFile":
			if value == "none" {
				continue
			}
			if keyword != "IdentityFile" {
				keyword, value = proxy, keyword+" "+value
			}
		}
		a.values[keyword] = append(a.values[keyword], value)
	}
	return a
}

// proxy is the key of ProxyJump and ProxyCommand, which are one setting; the value starts with the keyword.
const proxy = "proxy"

// run runs ssh and returns its output. The error has ssh's message.
func (c *Config) run(args ...string) (stdout, stderr string, err error) {
	c.running <- struct{}{}
	defer func() { <-c.running }()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	// With IdentityFile none, ssh does not print its default identities. It must not look up
	// the name in DNS.
	all := []string{"-G", "-o", "IdentityFile=none", "-o", "CanonicalizeHostname=no"}
	if c.file != "" {
		all = append(all, "-F", c.file)
	}
	cmd := exec.CommandContext(ctx, "ssh", append(all, args...)...)
	cmd.WaitDelay = time.Second // a Match exec may leave a process that keeps the pipes open
	var out, told bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &told
	err = cmd.Run()
	switch {
	case errors.Is(err, exec.ErrNotFound):
		return "", "", ErrNoSSH
	case ctx.Err() != nil:
		return "", "", fmt.Errorf("ssh -G did not answer within %s", patience)
	case err != nil:
		return "", "", fmt.Errorf("%s: %w", cmp.Or(words(told.String()), "ssh -G"), err)
	}
	return out.String(), told.String(), nil
}

// words returns ssh's own messages.
func words(stderr string) string {
	var out []string
	for line := range strings.Lines(stderr) {
		line = strings.TrimSpace(line)
		if line != "" && !strings.HasPrefix(line, "debug1: ") && !strings.HasPrefix(line, "OpenSSH_") && !strings.Contains(line, "terminating, ") {
			out = append(out, line)
		}
	}
	return strings.Join(out, "; ")
}
