package mac

import (
	"bufio"
	"errors"
	"io"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
)

func grep(p *proc) int {
	o, operands, status, ok := p.options("qcvEFxisnohe:")
	if !ok {
		return status
	}
	pattern := o['e']
	if !o.has('e') {
		if len(operands) == 0 {
			return p.usage("grep [-cEFhinoqsvx] [-e pattern] [pattern] [file ...]")
		}
		pattern, operands = operands[0], operands[1:]
	}
	matcher, err := grepPattern(o, pattern)
	if err != nil {
		return p.fail(exitUsage, "%s", err)
	}
	quiet := *p
	if o.has('s') {
		quiet.stderr = io.Discard
	}
	g := &grepper{p: p, o: o, matcher: matcher, label: len(operands) > 1 && !o.has('h')}
	status = quiet.inputs(operands, exitUsage, g.read)
	switch {
	case g.found && (status == 0 || o.has('q')):
		return 0
	case status != 0:
		return status
	}
	return exitFailed
}

type grepper struct {
	p       *proc
	o       options
	matcher *regexp.Regexp
	label   bool
	found   bool
}

func (g *grepper) read(name string, r io.Reader) {
	label := ""
	if g.label {
		label = name + ":"
	}
	in, count := bufio.NewReader(r), 0
	for number := 1; ; number++ {
		line, err := in.ReadString('\n')
		if err != nil && line == "" {
			break
		}
		line = strings.TrimSuffix(line, "\n")
		if g.matcher.MatchString(line) == g.o.has('v') {
			continue
		}
		count++
		g.found = true
		if g.o.has('q') {
			return
		}
		g.print(label, number, line)
	}
	if g.o.has('c') && !g.o.has('q') {
		g.p.printf("%s%d\n", label, count)
	}
}

func (g *grepper) print(label string, number int, line string) {
	switch {
	case g.o.has('c'):
	case g.o.has('o'):
		for _, match := range g.matcher.FindAllString(line, -1) {
			g.p.printf("%s%s\n", label, match)
		}
	case g.o.has('n'):
		g.p.printf("%s%d:%s\n", label, number, line)
	default:
		g.p.printf("%s%s\n", label, line)
	}
}

// patterns caches the first compiled expressions of this process by their text: hundreds of machines
// run the same scripts. They hold no machine's state.
var (
	patterns  sync.Map
	patterned atomic.Int64 // how many there are
)

const (
	maxPatterns = 200
	longPattern = 300
)

func grepPattern(o options, pattern string) (*regexp.Regexp, error) {
	var alternatives []string
	// Each line of a pattern is a separate pattern.
	for one := range strings.SplitSeq(pattern, "\n") {
		switch {
		case o.has('F'):
			one = regexp.QuoteMeta(one)
		case !o.has('E'):
			one = extended(one)
		}
		alternatives = append(alternatives, one)
	}
	text := "(?:" + strings.Join(alternatives, "|") + ")"
	if o.has('x') {
		text = "^" + text + "$"
	}
	if o.has('i') {
		text = "(?i)" + text
	}
	if known, ok := patterns.Load(text); ok {
		return known.(*regexp.Regexp), nil
	}
	matcher, err := regexp.Compile(text)
	if err != nil {
		return nil, errors.New("pattern not modelled: " + pattern)
	}
	if len(text) < longPattern && patterned.Add(1) <= maxPatterns {
		patterns.Store(text, matcher)
	}
	return matcher, nil
}

// extended turns a basic regular expression into an extended one: in the basic one, brackets, braces
// and bars are plain characters unless they are escaped.
func extended(basic string) string {
	var b strings.Builder
	for i := 0; i < len(basic); i++ {
		c := basic[i]
		switch {
		case c == '\\' && i+1 < len(basic):
			i++
			if !strings.ContainsRune("(){}|+?", rune(basic[i])) {
				b.WriteByte('\\')
			}
			b.WriteByte(basic[i])
		case c == '[':
			end := closing(basic, i)
			b.WriteString(basic[i:end])
			i = end - 1
		case strings.IndexByte("(){}|+?", c) >= 0, c == '*' && (i == 0 || basic[:i] == "^"):
			b.WriteString(`\` + string(c))
		default:
			b.WriteByte(c)
		}
	}
	return b.String()
}

// closing returns the end of a bracket expression, whose classes contain brackets themselves.
func closing(text string, start int) int {
	i := start + 1
	if i < len(text) && text[i] == '^' {
		i++
	}
	if i < len(text) && text[i] == ']' {
		i++
	}
	for ; i < len(text); i++ {
		if class := strings.Index(text[i:], ":]"); strings.HasPrefix(text[i:], "[:") && class > 0 {
			i += class + 1
			continue
		}
		if text[i] == ']' {
			return i + 1
		}
	}
	return len(text)
}
