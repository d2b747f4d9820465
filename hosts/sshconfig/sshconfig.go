// Package sshconfig asks ssh what a person's own configuration of it says of a
// machine: ssh -G prints the values that a connection would have.
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

// Settings are what the configuration says of one machine. A zero field says nothing.
type Settings struct {
	HostName string // name or address to connect to
	Port     int
	User     string     // as given, as the files say, or the person's own name
	Own      []Identity // IdentityFiles of this machine, in their order
	Shared   []Identity // IdentityFiles of every machine
	Jumps    []Hop      // to go through, in this order
	Alias    string     // HostKeyAlias: the name to look for among the known hosts
	Known    []string   // files of known hosts, which need not exist
	Agent    string     // socket of the agent; "none": no agent is asked
}

// Identity is an IdentityFile.
type Identity struct {
	Path  string // whole
	Shown string // as a person writes it
}

// Hop is one jump host as ProxyJump names it.
type Hop struct {
	Host string // a name to look up in its turn, or an address without brackets
	User string // empty: not named here
	Port int    // 0: not named here
}

// Lookup returns what the configuration says of a machine that has one or more
// names: what is said of the first goes before what is said of the second, and
// both go before what is said of all machines. User is who logs in, empty when the
// configuration may say it. A nil Config says nothing.
func (c *Config) Lookup(user string, names ...string) (Settings, error) {
	if c == nil {
		return Settings{User: user}, nil
	}
	l := lookup{names: names}
	var err error
	if l.all, err = c.answer(user, nobody); err != nil {
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

// lookup is the work on one machine.
type lookup struct {
	names []string
	said  []answer // by name
	all   answer   // of a name that no machine has
}

// pick returns the value of a keyword and the name it was found under.
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
		return Settings{}, fmt.Errorf("macfleet starts no ProxyCommand to reach %s (%s); "+
			"write ProxyJump HOST instead, or ProxyCommand none for these hosts in a file that is named with --ssh-config", l.names[0], command)
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

// identities returns the IdentityFiles of this machine and those of all.
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

// parseHop reads a hop as ssh -G prints it: [user@]host[:port], an IPv6 address in
// brackets.
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

// tokens are what the signs of IdentityFile and ProxyJump stand for. ssh -G prints
// these two as they are written, and the others expanded.
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
		return "", fmt.Errorf("macfleet knows no %s in %s %s; write out what it stands for", unknown, keyword, text)
	}
	return out, nil
}

// identity finds the file that an IdentityFile names. A relative one starts at the
// working directory, as for ssh.
func (t tokens) identity(text string) (Identity, error) {
	rest, inHome := strings.CutPrefix(text, "~/")
	if !inHome && strings.HasPrefix(text, "~") {
		return Identity{}, fmt.Errorf("macfleet does not know the home of another user in IdentityFile %s; write the whole path", text)
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
