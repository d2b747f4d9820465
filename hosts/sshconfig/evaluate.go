package sshconfig

import (
	"slices"
	"strings"
)

// value is what a line gives to a keyword.
type value struct {
	text string
	args []string // of a keyword with several: all of them
	line line
}

// values are what the files say of one name: for each keyword the first value
// that applies, and of IdentityFile all. ProxyJump and ProxyCommand are one
// setting: the first of either wins.
type values map[string][]value

// proxy is the keyword under which ProxyJump and ProxyCommand are kept.
const proxy = "proxy"

func (v values) first(keyword string) (value, bool) {
	if len(v[keyword]) == 0 {
		return value{}, false
	}
	return v[keyword][0], true
}

// evaluation walks the files for one name.
type evaluation struct {
	config  *Config
	alias   string // the name as it was given
	name    string // what Host compares: the alias, in the final pass the HostName
	user    string // who logs in, as if named on the command line; empty: not named
	final   bool   // this is the pass in which Match final applies
	another bool   // some block asks for that pass
	found   values
}

// evaluate returns what the files say of a name. A Match final makes a second
// pass, which adds to what the first found and replaces none of it.
func (c *Config) evaluate(alias, user string) (values, error) {
	e := evaluation{config: c, alias: alias, name: alias, user: user, found: make(values)}
	if err := e.all(); err != nil {
		return nil, err
	}
	if e.another {
		e.final = true
		var err error
		if e.name, err = e.host(); err != nil {
			return nil, err
		}
		// The final pass goes over every IdentityFile again: each counts once.
		if err := e.all(); err != nil {
			return nil, err
		}
	}
	return e.found, nil
}

func (e *evaluation) all() error {
	for _, lines := range e.config.files {
		if err := e.walk(lines, true); err != nil {
			return err
		}
	}
	return nil
}

// walk goes through one file. Within an Include the blocks of the inner file
// end with it, and none applies where the Include itself does not.
func (e *evaluation) walk(lines []line, outer bool) error {
	active := outer
	for _, l := range lines {
		switch l.keyword {
		case "Host":
			active = outer && matchesAny(l.args, e.name)
		case "Match":
			ok, err := e.match(l, outer)
			if err != nil {
				return err
			}
			active = ok
		case "Include":
			for _, inner := range l.files {
				if err := e.walk(inner, active); err != nil {
					return err
				}
			}
		default:
			if active {
				e.take(l)
			}
		}
	}
	return nil
}

func (e *evaluation) take(l line) {
	if len(l.args) == 0 {
		return
	}
	keyword, v := l.keyword, value{text: l.args[0], args: l.args, line: l}
	switch keyword {
	case "ProxyJump", "ProxyCommand":
		keyword = proxy
	case "IdentityFile":
		if slices.ContainsFunc(e.found[keyword], func(old value) bool { return old.text == v.text }) {
			return
		}
		e.found[keyword] = append(e.found[keyword], v)
		return
	}
	if len(e.found[keyword]) == 0 {
		e.found[keyword] = []value{v}
	}
}

// match decides a Match line. All its criteria are looked at, because a "final"
// anywhere asks for the final pass.
func (e *evaluation) match(l line, applies bool) (bool, error) {
	args := l.args
	for i := 0; len(args) > 0; i++ {
		word, not := strings.CutPrefix(args[0], "!")
		criterion, pattern, given := strings.Cut(word, "=")
		criterion, args = strings.ToLower(criterion), args[1:]
		yes := false
		switch criterion {
		case "all":
			if i > 1 || i == 1 && !slices.Contains([]string{"final", "canonical"}, strings.ToLower(l.args[0])) || len(args) > 0 || not {
				return false, l.fault(`write "Match all"`, "all goes with no other criterion")
			}
			return applies, nil
		case "final", "canonical":
			e.another = e.another || criterion == "final" && !e.final
			yes = e.final
		case "host", "originalhost", "user", "localuser":
			if !given {
				if len(args) == 0 {
					return false, l.fault("name one or more patterns after it", "Match %s has no pattern", criterion)
				}
				pattern, args = args[0], args[1:]
			}
			text, err := e.subject(criterion)
			if err != nil {
				return false, err
			}
			yes = matchesAny(strings.Split(pattern, ","), text)
		default:
			// A command, a network or a tag can't be looked up here. Where the
			// criteria before it fail already, it does not matter, nor to OpenSSH.
			if !applies {
				return false, nil
			}
			return false, l.fault("give macfleet a file of its own with --ssh-config FILE, or put a criterion in front of it that these hosts fail",
				"macfleet does not know whether Match %s applies to %s", criterion, e.alias)
		}
		applies = applies && yes != not
	}
	return applies, nil
}

// subject returns what a criterion of Match compares.
func (e *evaluation) subject(criterion string) (string, error) {
	switch criterion {
	case "host":
		name, err := e.host()
		return strings.ToLower(name), err
	case "user":
		return e.login(), nil
	case "localuser":
		return e.config.env.User, nil
	}
	return strings.ToLower(e.alias), nil
}

// host returns the HostName that is known so far.
func (e *evaluation) host() (string, error) {
	v, ok := e.found.first("HostName")
	if !ok {
		return e.alias, nil
	}
	return v.expand(map[byte]string{'h': e.alias})
}

// login returns the user that is known so far.
func (e *evaluation) login() string {
	if e.user != "" {
		return e.user
	}
	if v, ok := e.found.first("User"); ok {
		return v.text
	}
	return e.config.env.User
}
