package mac

import (
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// exitTable is pfctl's exit code for a missing table.
const exitTable = 255

// pfctlCall is one call of pfctl.
type pfctlCall struct {
	p        *proc
	options  options
	operands []string
	anchor   string
	text     string // of the file to load, if it is the standard input
	v        *visit
	live     *filter

	// The output is kept until the machine is unlocked: its reader may be slow.
	stdout, stderr strings.Builder
	changed        bool
}

func pfctl(p *proc) int {
	o, operands, status, ok := p.options("a:deEf:F:nNqRs:t:T:vX:")
	switch {
	case !ok:
		return status
	case len(o) == 0 || len(operands) > 0 && !o.has('T') || o.has('T') && !o.has('t'):
		_, _ = fmt.Fprintln(p.stderr, "usage: pfctl [-AdeEghmNnOqRrvz] [-a anchor] [-D macro=value] [-F modifier]\n\t[-f file] [-i interface] [-K host | network]\n\t[-k host | network] [-o level] [-p device]\n\t[-s modifier] [-t table -T command [address ...]] [-X token]\n\t[-x level]")
		return exitFailed
	case p.user.uid != 0:
		return p.fail(exitFailed, "/dev/pf: Permission denied")
	}
	c := &pfctlCall{p: p, options: o, operands: operands, anchor: strings.Trim(o['a'], "/")}
	c.noise()
	if o.has('f') && o['f'] == "-" {
		text, err := io.ReadAll(p.input())
		if err != nil {
			return p.fail(exitFailed, "-: %s", why(err))
		}
		c.text = string(text)
	}
	err := p.visit(func(v *visit) (err error) {
		c.v = v
		if c.live, err = v.filter(); err != nil {
			return err
		}
		status = c.perform()
		if !c.changed {
			return nil
		}
		c.live.tidy()
		return v.setFilter(c.live)
	})
	p.printf("%s", c.stdout.String())
	_, _ = io.WriteString(p.stderr, c.stderr.String())
	if err == nil && c.changed {
		err = p.session.severIfCut()
	}
	if err != nil {
		return p.fail(exitFailed, "/dev/pf: %s", why(err))
	}
	return status
}

// noise is what macOS's pfctl prints on every call.
func (c *pfctlCall) noise() {
	if c.options.has('f') && !c.options.has('T') {
		c.say("pfctl: Use of -f option, could result in flushing of rules\npresent in the main ruleset added by the system at startup.\nSee /etc/pf.conf for further details.\n")
	}
	c.say("No ALTQ support in kernel\nALTQ related functions disabled")
}

func (c *pfctlCall) show(format string, args ...any) {
	fmt.Fprintf(&c.stdout, format+"\n", args...)
}

// say writes to stderr, where pfctl reports what it has done.
func (c *pfctlCall) say(format string, args ...any) {
	fmt.Fprintf(&c.stderr, format+"\n", args...)
}

// done reports what was done, unless -q is given.
func (c *pfctlCall) done(format string, args ...any) {
	if !c.options.has('q') {
		c.say(format, args...)
	}
}

func (c *pfctlCall) fail(status int, format string, args ...any) int {
	c.say("pfctl: "+format, args...)
	return status
}

// perform runs the options in pfctl's own order. With -n it only reads a file.
func (c *pfctlCall) perform() int {
	parts := []struct {
		option byte
		run    func() int
	}{
		{'d', c.disable}, {'X', c.release}, {'s', c.shown}, {'F', c.flush}, {'T', c.tables}, {'f', c.load}, {'e', c.enable}, {'E', c.enableCounted},
	}
	if strings.HasSuffix(c.anchor, "*") && !c.options.has('s') {
		return c.fail(exitFailed, "DIOCXBEGIN: Invalid argument")
	}
	for _, part := range parts {
		if !c.options.has(part.option) || c.options.has('n') && part.option != 'f' || part.option == 'f' && c.options.has('T') {
			continue
		}
		if status := part.run(); status != 0 {
			return status
		}
	}
	return 0
}

func (c *pfctlCall) switchTo(enabled bool) {
	c.live.Enabled, c.live.Since, c.changed = enabled, c.p.session.now(), true
}

func (c *pfctlCall) enable() int {
	if c.live.Enabled {
		return c.fail(exitFailed, "pf already enabled")
	}
	c.switchTo(true)
	c.done("pf enabled")
	return 0
}

// disable disables pf, whatever processes need it, and releases all references.
func (c *pfctlCall) disable() int {
	if !c.live.Enabled {
		return c.fail(exitFailed, "pf not enabled")
	}
	c.switchTo(false)
	c.live.References = nil
	c.done("pf disabled")
	return 0
}

// enableCounted enables pf if necessary and adds a reference each time.
func (c *pfctlCall) enableCounted() int {
	if !c.live.Enabled {
		c.switchTo(true)
	}
	var random [8]byte
	if _, err := rand.Read(random[:]); err != nil {
		return c.fail(exitFailed, "%s", err)
	}
	token := binary.BigEndian.Uint64(random[:])
	c.live.References = append(c.live.References, reference{PID: 5000 + len(c.live.References), Process: "pfctl", Token: token, Since: c.p.session.now()})
	c.changed = true
	c.done("pf enabled\nToken : %d", token)
	return 0
}

// release releases a reference; the last one disables pf.
func (c *pfctlCall) release() int {
	token, err := strconv.ParseUint(c.options['X'], 10, 64)
	if err != nil {
		return c.fail(exitFailed, "invalid token: %s", c.options['X'])
	}
	if !c.live.release(token, c.p.session.now()) {
		return c.fail(exitFailed, "pf not enabled or invalid token")
	}
	c.changed = true
	if left := len(c.live.References); left > 0 {
		c.done("disable request successful. %d more pf enable reference(s) remaining, pf still enabled.", left)
		return 0
	}
	c.done("pf disabled")
	return 0
}

// only returns the lists that a load replaces if not all: with -R the filter rules, with -N the
// translations.
func (c *pfctlCall) only() (kinds []ruleKind) {
	if c.options.has('R') {
		kinds = append(kinds, scrubRule, dummynetRule, filterRule)
	}
	if c.options.has('N') {
		kinds = append(kinds, natRule, rdrRule, binatRule)
	}
	return kinds
}

// load loads a file into the main ruleset or an anchor.
func (c *pfctlCall) load() int {
	name, text := c.options['f'], c.text
	if name == "-" {
		name = "stdin"
	} else {
		data, err := c.v.read(c.p, name)
		if err != nil {
			c.say("pfctl: %s: %s", name, why(err))
			c.say("pfctl: cannot open the main config file!: %s", why(err))
			return c.fail(exitFailed, "Syntax error in config file: pf rules not loaded")
		}
		text = string(data)
	}
	l := &loading{live: c.live, switched: c.v.switched, only: c.only(), read: func(name string) ([]byte, error) { return c.v.read(c.p, name) }}
	next, err := l.load(name, text, c.anchor)
	if err != nil {
		lines, unmodelled := explain(err)
		c.say("%s", strings.Join(lines, "\n"))
		if unmodelled {
			return c.fail(exitUnmodelled, "statement not modelled")
		}
		return c.fail(exitFailed, "Syntax error in config file: pf rules not loaded")
	}
	if c.options.has('v') {
		c.showFiles(l.files)
	}
	if !c.options.has('n') {
		c.live, c.changed = next, true
	}
	return 0
}
