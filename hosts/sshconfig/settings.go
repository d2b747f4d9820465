package sshconfig

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
)

// settings brings the values into their final form.
func (l lookup) settings() (Settings, error) {
	var s Settings
	name := l.names[0]
	if v, alias, ok := l.pick("HostName"); ok {
		var err error
		if s.HostName, err = v.expand(map[byte]string{'h': alias}); err != nil {
			return Settings{}, err
		}
		// Brackets are for where a port follows.
		if inside, ok := strings.CutPrefix(s.HostName, "["); ok {
			s.HostName = strings.TrimSuffix(inside, "]")
		}
		name = alias
	}
	if v, _, ok := l.pick("Port"); ok {
		s.Port, _ = port(v.text) // checked when it was read
	}
	s.User = l.user
	if v, _, ok := l.pick("User"); ok && s.User == "" {
		s.User = v.text
	}
	if s.User == "" {
		s.User = l.config.env.User
	}
	if v, _, ok := l.pick("HostKeyAlias"); ok {
		s.Alias = v.text
	}
	t := l.tokens(s, name)
	if err := l.jumps(&s, t); err != nil {
		return Settings{}, err
	}
	if err := l.files(&s, t); err != nil {
		return Settings{}, err
	}
	var err error
	s.Own, s.Shared, err = l.identities(t)
	return s, err
}

func (l lookup) tokens(s Settings, name string) tokens {
	host, number := s.HostName, strconv.Itoa(s.Port)
	if host == "" {
		host = name
	}
	if s.Port == 0 {
		number = "22"
	}
	return tokens{env: l.config.env, of: map[byte]string{'h': host, 'n': name, 'p': number, 'r': s.User,
		'u': l.config.env.User, 'd': l.config.env.Home, 'i': l.config.env.UID}}
}

func (l lookup) jumps(s *Settings, t tokens) error {
	v, _, ok := l.pick(proxy)
	if !ok {
		return nil
	}
	if v.line.keyword == "ProxyCommand" {
		if strings.EqualFold(v.text, "none") {
			return nil
		}
		return v.line.fault("write ProxyJump HOST instead, or ProxyCommand none for these hosts in a file that is named with --ssh-config",
			"macfleet starts no ProxyCommand to reach %s", l.names[0])
	}
	text, err := v.expand(t.only("hnpr"))
	if err != nil {
		return err
	}
	if s.Jumps, err = parseJump(text); err != nil {
		return v.line.fault(jumpForm, "ProxyJump %s: %s", text, err)
	}
	return nil
}

// files finds the agent's socket and the files of known hosts.
func (l lookup) files(s *Settings, t tokens) error {
	if v, _, ok := l.pick("IdentityAgent"); ok && v.text != "SSH_AUTH_SOCK" {
		s.Agent = v.text
		if name, variable := strings.CutPrefix(v.text, "$"); variable && !strings.HasPrefix(name, "{") {
			v.text = "${" + name + "}"
		}
		if v.text != "none" {
			var err error
			if s.Agent, err = t.path(v, v.text); err != nil {
				return err
			}
		}
	}
	home := filepath.Join(l.config.env.Home, ".ssh")
	for _, of := range []struct {
		keyword string
		usual   []string
	}{
		{"UserKnownHostsFile", []string{filepath.Join(home, "known_hosts"), filepath.Join(home, "known_hosts2")}},
		{"GlobalKnownHostsFile", []string{"/etc/ssh/ssh_known_hosts", "/etc/ssh/ssh_known_hosts2"}},
	} {
		v, _, ok := l.pick(of.keyword)
		if !ok {
			s.Known = append(s.Known, of.usual...)
			continue
		}
		for _, name := range v.args {
			if name == "none" {
				continue
			}
			path, err := t.path(v, name)
			if err != nil {
				return err
			}
			s.Known = append(s.Known, path)
		}
	}
	return nil
}

// tokens are what the signs of a value stand for.
type tokens struct {
	env Environment
	of  map[byte]string
}

func (t tokens) only(letters string) map[byte]string {
	out := make(map[byte]string, len(letters))
	for i := range len(letters) {
		out[letters[i]] = t.of[letters[i]]
	}
	return out
}

// expand replaces the signs of a value: %% and those that are given.
func (v value) expand(of map[byte]string) (string, error) { return v.expandText(v.text, of) }

func (v value) expandText(text string, of map[byte]string) (string, error) {
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] != '%' {
			b.WriteByte(text[i])
			continue
		}
		i++
		sign := ""
		if i < len(text) {
			sign = text[i : i+1]
		}
		with, ok := "%", sign == "%"
		if !ok && sign != "" {
			with, ok = of[sign[0]]
		}
		if !ok {
			return "", v.line.fault("write out what it stands for", "macfleet knows no %%%s in %s", sign, text)
		}
		b.WriteString(with)
	}
	return b.String(), nil
}

// path expands a file's name: ~, ${NAME} and the signs. A relative one starts
// at the working directory, as for ssh.
func (t tokens) path(v value, text string) (string, error) {
	switch {
	case text == "~" || strings.HasPrefix(text, "~/"):
		text = escape(t.env.Home) + text[1:]
	case strings.HasPrefix(text, "~"):
		return "", v.line.fault("write the whole path", "macfleet does not know the home of another user in %s", text)
	}
	var b strings.Builder
	for {
		before, rest, found := strings.Cut(text, "${")
		b.WriteString(before)
		if !found {
			break
		}
		name, after, closed := strings.Cut(rest, "}")
		var with string
		set := false
		if t.env.LookupEnv != nil {
			with, set = t.env.LookupEnv(name)
		}
		if !closed || !set {
			return "", v.line.fault("set it, or write out what it stands for", "the variable ${%s} is not set", name)
		}
		b.WriteString(escape(with))
		text = after
	}
	path, err := v.expandText(b.String(), t.of)
	if err != nil {
		return "", err
	}
	if path, err = filepath.Abs(path); err != nil {
		return "", fmt.Errorf("%s:%d: %w", v.line.file, v.line.number, err)
	}
	return path, nil
}

// escape keeps the percent signs of a text that is no pattern.
func escape(text string) string { return strings.ReplaceAll(text, "%", "%%") }

// shown returns a path as a person would write it.
func (c *Config) shown(path string) string {
	if rest, ok := strings.CutPrefix(path, c.env.Home+"/"); ok && c.env.Home != "" {
		return "~/" + rest
	}
	return path
}
