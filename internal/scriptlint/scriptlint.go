// Package scriptlint checks the scripts that run on hosts: they must behave the same in macOS's bash
// 3.2, in dash, in bash and in the simulator's shell, and a probe must not change anything.
package scriptlint

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"mvdan.cc/sh/v3/syntax"

	"github.com/macfleet/macfleet/internal/conformance"
)

// Kind is the purpose of a script.
type Kind int

// The kinds of script.
const (
	Change Kind = iota
	Probe       // must not write
)

// rule is how a command may be used.
type rule struct {
	// reads reports whether a call with these arguments changes nothing.
	reads func(args []string) bool
}

func always([]string) bool { return true }

func never([]string) bool { return false }

// first returns whether the first argument is the given one.
func first(want string) func([]string) bool {
	return func(args []string) bool { return len(args) > 0 && args[0] == want }
}

// rules returns every command that a script may call: the builtins that all shells share, and the
// tools by bare name. What the tools of macOS read is in the table of package conformance. Others are refused: umask, kill and ulimit, which the simulator's shell lacks;
// sed, whose -i differs; python and git, which are stubs that open a dialog on a Mac without developer
// tools.
var rules = sync.OnceValues(func() (map[string]rule, error) {
	reads, err := conformance.Reads()
	if err != nil {
		return nil, err
	}
	out := make(map[string]rule)
	for tool, calls := range reads {
		out[tool] = rule{func(args []string) bool {
			return slices.ContainsFunc(calls, func(call []string) bool { return is(args, call) })
		}}
	}
	for _, name := range strings.Fields(`: [ base64 break cat cd cmp continue cut date df echo eval exec exit export false
		grep gzip head id ifconfig od openssl pgrep printf ps read return set shift shasum sleep stat sudo perl readlink sync tail test tr trap true uname wc who`) {
		out[name] = rule{always}
	}
	for _, name := range strings.Fields("chmod chown cp curl killall ln mkdir mktemp mv rm rmdir shutdown touch visudo") {
		out[name] = rule{never}
	}
	out["dscl"] = rule{func(args []string) bool { return len(args) > 1 && args[1] == "-read" }} // -authonly counts a failed login
	// pfctl -nf loads tables while it reads, as a fleet found out.
	out["pfctl"] = rule{func(args []string) bool {
		for i, a := range args {
			show := strings.HasPrefix(a, "-s") || a == "-v" || a == "-q" || a == "-a" || a == "-t" || a == "-T"
			operand := i > 0 && (args[i-1] == "-a" || args[i-1] == "-s" || args[i-1] == "-t" || args[i-1] == "-T" && a == "show")
			if !show && !operand {
				return false
			}
		}
		return true
	}}
	out["dd"] = rule{func(args []string) bool {
		// An argument that starts with a value may be any operand.
		return !slices.ContainsFunc(args, func(a string) bool { return strings.HasPrefix(a, value) || strings.HasPrefix(a, "of=") })
	}}
	out["df"], out["tar"] = rule{always}, rule{never}
	return out, nil
})

// is reports whether the arguments are those of a call. Where the call ends in *, more may follow.
func is(args, call []string) bool {
	if n := len(call) - 1; n >= 0 && call[n] == "*" {
		return len(args) >= n && slices.Equal(args[:n], call[:n])
	}
	return len(call) > 0 && slices.Equal(args, call)
}

// Check returns the faults of a script, one per line, with their positions.
func Check(name, text string, kind Kind) []string {
	file, err := syntax.NewParser(syntax.Variant(syntax.LangPOSIX)).Parse(strings.NewReader(text), name)
	if err != nil {
		return []string{err.Error()}
	}
	known, err := rules()
	if err != nil {
		return []string{err.Error()}
	}
	c := checker{name: name, kind: kind, rules: known, functions: make(map[string]bool)}
	syntax.Walk(file, func(n syntax.Node) bool {
		if f, ok := n.(*syntax.FuncDecl); ok && f.Name != nil {
			c.functions[f.Name.Value] = true
		}
		return true
	})
	syntax.Walk(file, func(n syntax.Node) bool {
		c.node(n)
		return true
	})
	return c.faults
}

type checker struct {
	name      string
	kind      Kind
	rules     map[string]rule
	functions map[string]bool
	faults    []string
}

func (c *checker) fault(n syntax.Node, format string, args ...any) {
	c.faults = append(c.faults, fmt.Sprintf("%s:%s: %s", c.name, n.Pos(), fmt.Sprintf(format, args...)))
}

func (c *checker) node(n syntax.Node) {
	switch n := n.(type) {
	case *syntax.CallExpr:
		c.call(n)
	case *syntax.Redirect:
		c.redirect(n)
	case *syntax.FuncDecl:
		if n.Name == nil {
			c.fault(n, "a function needs a name")
		}
	}
}

func (c *checker) call(n *syntax.CallExpr) { c.command(n, n.Args) }

// command checks a command and the command that it runs, if any.
func (c *checker) command(n *syntax.CallExpr, words []*syntax.Word) {
	if len(words) == 0 {
		return
	}
	name := words[0].Lit()
	var args []string
	for _, w := range words[1:] {
		text, _ := known(w.Parts)
		args = append(args, text)
	}
	switch name {
	case "exec":
		c.command(n, words[1:])
	case "sudo":
		// sudo -v runs nothing.
		if rest := words[1+options(args):]; len(rest) > 0 || !slices.Contains(args, "-v") {
			c.command(n, rest)
		}
	}
	rule, listed := c.rules[name]
	switch {
	case c.functions[name]:
	case name == "":
		c.fault(n, "the command's name is not a plain word")
	case strings.Contains(name, "/"):
		if name != "/bin/sh" {
			c.fault(n, "call %s by its bare name: the prologue sets the path", name)
		}
	case !listed:
		c.fault(n, "%s is not on the list of what every shell and host has: a tool of macOS needs the key reads in internal/conformance/table", name)
	case name == "trap" && (len(args) != 2 || args[1] != "EXIT"):
		c.fault(n, "only a trap on EXIT works in every shell")
	case name == "set" && !(len(args) == 1 && (args[0] == "-e" || args[0] == "-u" || args[0] == "-eu" || args[0] == "--")) && !first("--")(args):
		c.fault(n, "only set -e, set -u and set -- work in every shell")
	case c.kind == Probe && !rule.reads(args):
		c.fault(n, "a probe must not write, and %s does, unless internal/conformance/table says that this call reads", name)
	}
}

// options counts the leading arguments of sudo that are its own.
func options(args []string) int {
	n := 0
	for n < len(args) && strings.HasPrefix(args[n], "-") {
		if args[n] == "-u" || args[n] == "-g" || args[n] == "-p" {
			n++
		}
		n++
	}
	return min(n, len(args))
}

// value marks the end of the known part of a word, where a value of the run follows.
const value = "$"

// known returns the text of a word, without quotes, up to the first unknown part.
func known(parts []syntax.WordPart) (text string, whole bool) {
	for _, p := range parts {
		more, all := "", true
		switch p := p.(type) {
		case *syntax.Lit:
			more = p.Value
		case *syntax.SglQuoted:
			more = p.Value
		case *syntax.DblQuoted:
			more, all = known(p.Parts)
		default:
			more, all = value, false
		}
		text += more
		if !all {
			return text, false
		}
	}
	return text, true
}

func (c *checker) redirect(n *syntax.Redirect) {
	if n.N != nil && n.N.Value != "0" && n.N.Value != "1" && n.N.Value != "2" {
		c.fault(n, "file descriptor %s: the simulator's shell has 0, 1 and 2", n.N.Value)
	}
	if copies := n.Op == syntax.DplOut || n.Op == syntax.DplIn; copies && !slices.Contains([]string{"0", "1", "2", "-"}, n.Word.Lit()) {
		c.fault(n, "%s%s: only the file descriptors 0, 1 and 2 are in every shell", n.Op, n.Word.Lit())
	}
	writes := n.Op == syntax.RdrOut || n.Op == syntax.AppOut || n.Op == syntax.RdrClob || n.Op == syntax.RdrInOut
	if c.kind == Probe && writes && n.Word.Lit() != "/dev/null" {
		c.fault(n, "a probe must not write to a file")
	}
}
