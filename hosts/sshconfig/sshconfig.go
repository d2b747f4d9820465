// Package sshconfig reads a person's configuration of OpenSSH's client, the
// parts of it that say how a machine is reached: Host, Match, Include, HostName,
// Port, User, IdentityFile, IdentityAgent, ProxyJump and the known hosts. It
// reads them as ssh does; what it can't read so is an error and never a guess.
package sshconfig

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
)

// Environment is what the files may refer to. Each field may be empty.
type Environment struct {
	Home      string                           // of the person, for ~ and %d
	User      string                           // name of the person, for %u
	UID       string                           // for %i
	LookupEnv func(name string) (string, bool) // for ${NAME}; nil: none is set
}

// Config is what the files say. A nil Config says nothing.
type Config struct {
	env   Environment
	files [][]line // the first value wins
}

// Source is a file to read.
type Source struct {
	Path     string
	Base     string // of relative names in Include
	Optional bool   // it may be missing
}

// Sources returns the person's own file and the system's, in the order in which
// they count.
func Sources(home string) []Source {
	return []Source{
		{Path: filepath.Join(home, ".ssh", "config"), Base: filepath.Join(home, ".ssh"), Optional: true},
		{Path: "/etc/ssh/ssh_config", Base: "/etc/ssh", Optional: true},
	}
}

// Read reads files and all that they include. An error names file and line, or
// the file that cannot be read, and what to do.
func Read(env Environment, sources []Source) (*Config, error) {
	c := &Config{env: env}
	for _, s := range sources {
		lines, err := reader{home: env.Home, base: s.Base}.read(s.Path, 0)
		var fault *FaultError
		switch {
		case s.Optional && errors.Is(err, fs.ErrNotExist):
			continue
		case errors.As(err, &fault):
			return nil, fmt.Errorf("read the ssh configuration: %w", err)
		case err != nil:
			return nil, fmt.Errorf("read the ssh configuration: %w; make it readable, or name another with --ssh-config FILE (none reads no file)", err)
		}
		c.files = append(c.files, lines)
	}
	// What goes wrong for a name that nobody bears goes wrong for all.
	if _, err := c.evaluate(nobody, ""); err != nil {
		return nil, fmt.Errorf("read the ssh configuration: %w", err)
	}
	return c, nil
}

// nobody is a name that no machine bears: what the files say of it they say of
// all.
const nobody = "no-machine-bears-this-name"

// Settings are what the files say of one machine. A zero field says nothing.
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

// Lookup returns what the files say of a machine, which has one or more names:
// what is said of the first goes before what is said of the second, and both go
// before what is said of all machines. User is who logs in, empty when the files
// may say it. The error is a *FaultError.
func (c *Config) Lookup(user string, names ...string) (Settings, error) {
	if c == nil {
		return Settings{}, nil
	}
	all, err := c.evaluate(nobody, user)
	if err != nil {
		return Settings{}, err
	}
	l := lookup{config: c, all: all, user: user}
	for _, name := range names {
		said, err := c.evaluate(name, user)
		if err != nil {
			return Settings{}, err
		}
		l.names, l.said = append(l.names, name), append(l.said, said)
	}
	return l.settings()
}

// lookup is the work on one machine.
type lookup struct {
	config *Config
	user   string
	names  []string
	said   []values // by name
	all    values   // of a name that nobody bears
}

// pick returns the value of a keyword and the name it was found under.
func (l lookup) pick(keyword string) (value, string, bool) {
	general, _ := l.all.first(keyword)
	for i, said := range l.said {
		if v, ok := said.first(keyword); ok && !v.same(general) {
			return v, l.names[i], true
		}
	}
	v, ok := l.said[0].first(keyword)
	return v, l.names[0], ok
}

func (v value) same(other value) bool { return slices.Equal(v.args, other.args) }

// identities returns the IdentityFiles of this machine and those of all. "none"
// stands for no file.
func (l lookup) identities(t tokens) (own, shared []Identity, err error) {
	add := func(to *[]Identity, v value) error {
		if v.text == "none" {
			return nil
		}
		path, err := t.path(v, v.text)
		if err == nil {
			*to = append(*to, Identity{Path: path, Shown: l.config.shown(path)})
		}
		return err
	}
	for _, said := range l.said {
		for _, v := range said["IdentityFile"] {
			to := &own
			if slices.ContainsFunc(l.all["IdentityFile"], v.same) {
				to = &shared
			}
			if err := add(to, v); err != nil {
				return nil, nil, err
			}
		}
	}
	return unique(own), unique(shared), nil
}

func unique(all []Identity) []Identity {
	var out []Identity
	for _, i := range all {
		if !slices.Contains(out, i) {
			out = append(out, i)
		}
	}
	return out
}
