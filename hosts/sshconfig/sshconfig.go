// Package sshconfig reads a person's own ssh configuration for a machine with ssh -G, which
// prints the values that a connection would use.
package sshconfig

import (
	"fmt"
	"net"
	"os"
	"os/user"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Settings are the configuration of one machine. A zero field is not set.
type Settings struct {
	HostName string // name or address to connect to
	Port     int
	User     string     // as given, from the files, or the person's own name
	Own      []Identity // IdentityFiles of this machine, in order
	Shared   []Identity // IdentityFiles of every machine
	Jumps    []Hop      // jump hosts in this order
	Alias    string     // HostKeyAlias: the name in known_hosts
	Known    []string   // known_hosts files, which may not exist
	Agent    string     // socket of the agent; "none": no agent
}

// Identity is an IdentityFile.
type Identity struct {
	Path  string // whole
	Shown string // as written, for display
}

// Hop is one jump host of a ProxyJump.
type Hop struct {
	Host string // a name to look up, or an address without brackets
	User string // empty: not set
	Port int    // 0: not set
}

// Lookup returns the settings of a machine with one or more names. Settings of earlier names
// take precedence over later ones, and these over settings for all machines. user is the login
// user; empty: from the configuration. A nil Config has no settings.
func (c *Config) Lookup(user string, names ...string) (Settings, error) {
	if c == nil {
		return Settings{User: user}, nil
	}
	l := lookup{names: names}
	var err error
	if l.all, err = c.answer(user, anyMachine); err != nil {
		return Settings{}, err
	}
	for _, name := range names {
		a, err := c.answer(user, name)
		if err != nil {
			return Settings{}, err
		}
		l.said = append(l.said, a)
	}
	return l.settings()
}

// lookup is the lookup of one machine.
type lookup struct {
	names []string
	said  []answer // by name
	all   answer   // for a name that matches no machine
}

// pick returns the value of a keyword and the name it was found for.
func (l lookup) pick(keyword string) (value, name string) {
	for i, a := range l.said {
		if v := a.first(keyword); v != l.all.first(keyword) {
			return v, l.names[i]
		}
	}
	return l.said[0].first(keyword), l.names[0]
}

func (l lookup) settings() (Settings, error) {
	var s Settings
	var name string
	s.HostName, name = l.pick("HostName")
	number, _ := l.pick("Port")
	s.Port, _ = strconv.Atoi(number) // ssh checked it
	s.User, _ = l.pick("User")
	s.Alias, _ = l.pick("HostKeyAlias")
	s.Agent, _ = l.pick("IdentityAgent")
	if variable, ok := strings.CutPrefix(s.Agent, "$"); ok {
		s.Agent = os.Getenv(variable)
	} else if s.Agent == "SSH_AUTH_SOCK" {
		s.Agent = ""
	}
	for _, keyword := range []string{"UserKnownHostsFile", "GlobalKnownHostsFile"} {
		files, _ := l.pick(keyword)
		s.Known = append(s.Known, slices.DeleteFunc(strings.Fields(files), func(f string) bool { return f == "none" })...)
	}
	t := newTokens(name, s)
	how, _ := l.pick(proxy)
	if command, ok := strings.CutPrefix(how, "ProxyCommand "); ok {
		return Settings{}, fmt.Errorf("ProxyCommand is not supported, to reach %s (%s); "+
			"use ProxyJump HOST instead, or set ProxyCommand none for these hosts in a file for --ssh-config", l.names[0], command)
	}
	if jumps := strings.TrimPrefix(how, "ProxyJump "); jumps != "" {
		jumps, err := t.expand("ProxyJump", jumps)
		if err != nil {
			return Settings{}, err
		}
		for hop := range strings.SplitSeq(jumps, ",") {
			s.Jumps = append(s.Jumps, parseHop(hop))
		}
	}
	var err error
	s.Own, s.Shared, err = l.identities(t)
	return s, err
}

// identities returns the IdentityFiles of this machine and those of all machines.
func (l lookup) identities(t tokens) (own, shared []Identity, err error) {
	for _, a := range l.said {
		for _, text := range a.values["IdentityFile"] {
			to := &own
			if slices.Contains(l.all.values["IdentityFile"], text) {
				to = &shared
			}
			i, err := t.identity(text)
			if err != nil {
				return nil, nil, err
			}
			if !slices.Contains(*to, i) {
				*to = append(*to, i)
			}
		}
	}
	return own, shared, nil
}

// parseHop parses a hop of ssh -G: [user@]host[:port], with an IPv6 address in brackets.
func parseHop(text string) Hop {
	var h Hop
	if i := strings.LastIndex(text, "@"); i >= 0 {
		h.User, text = text[:i], text[i+1:]
	}
	host, number, err := net.SplitHostPort(text)
	if err != nil { // no port
		host = strings.Trim(text, "[]")
	}
	h.Host = host
	h.Port, _ = strconv.Atoi(number) // ssh checked it
	return h
}

// tokens are the values of percent tokens in IdentityFile and ProxyJump, which ssh -G prints
// unexpanded.
type tokens struct {
	home string
	of   map[string]string
}

func newTokens(name string, s Settings) tokens {
	t := tokens{home: os.Getenv("HOME")}
	host := s.HostName
	if host == "" {
		host = name
	}
	t.of = map[string]string{"%%": "%", "%h": host, "%n": name, "%p": strconv.Itoa(s.Port), "%r": s.User, "%i": strconv.Itoa(os.Getuid())}
	if me, err := user.Current(); err == nil { // as ssh, which does not look at HOME
		t.home, t.of["%u"] = me.HomeDir, me.Username
	}
	t.of["%d"] = t.home
	return t
}

var sign = regexp.MustCompile(`%.?|\$\{[^}]*\}`)

func (t tokens) expand(keyword, text string) (string, error) {
	var unknown string
	out := sign.ReplaceAllStringFunc(text, func(s string) string {
		with, ok := t.of[s]
		if name, variable := strings.CutPrefix(s, "${"); variable {
			with, ok = os.LookupEnv(strings.TrimSuffix(name, "}"))
		}
		if !ok {
			unknown = s
		}
		return with
	})
	if unknown != "" {
		return "", fmt.Errorf("unknown token %s in %s %s; write its value instead", unknown, keyword, text)
	}
	return out, nil
}

// identity resolves an IdentityFile. A relative path starts at the working directory, as for ssh.
func (t tokens) identity(text string) (Identity, error) {
	rest, inHome := strings.CutPrefix(text, "~/")
	if !inHome && strings.HasPrefix(text, "~") {
		return Identity{}, fmt.Errorf("IdentityFile %s: another user's home is not supported; use the full path", text)
	}
	path, err := t.expand("IdentityFile", rest)
	if err != nil {
		return Identity{}, err
	}
	if inHome {
		path = filepath.Join(t.home, path)
	}
	if path, err = filepath.Abs(path); err != nil {
		return Identity{}, fmt.Errorf("IdentityFile %s: %w", text, err)
	}
	i := Identity{Path: path, Shown: path}
	if rest, ok := strings.CutPrefix(path, t.home+"/"); ok && t.home != "" {
		i.Shown = "~/" + rest
	}
	return i, nil
}
