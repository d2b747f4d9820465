package mac

import (
	"strings"
)

// Faults are what is wrong with a machine on purpose. The zero value is a healthy one.
type Faults struct {
	// CutOutput breaks the connection in the middle of each command's output. The command itself
	// has run to its end by then.
	CutOutput bool
	// Garbled lets the tools that show settings print them in another form than expected.
	Garbled bool

	starting func(*proc) bool // asked before a tool runs; nil: every one may
}

// healthy has no faults.
func healthy() Faults { return Faults{} }

// garblers change what a tool prints, by the tool's name.
func garblers() map[string]func(string) string {
	return map[string]func(string) string{
		// As a table of another kind.
		"pmset": func(text string) string {
			var b strings.Builder
			for line := range strings.Lines(text) {
				name, value, found := strings.Cut(strings.TrimSpace(line), " ")
				if found && !strings.HasSuffix(strings.TrimSpace(line), ":") {
					line = "  " + name + " = " + strings.TrimSpace(value) + ";\n"
				}
				b.WriteString(line)
			}
			return b.String()
		},
		// With chatter in front.
		"scutil": func(text string) string { return "SCDynamicStore: session reopened\n" + text },
		// As a property list.
		"defaults": func(text string) string {
			return "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<plist version=\"1.0\">\n<string>" + strings.TrimSpace(text) + "</string>\n</plist>\n"
		},
	}
}

// tool runs one of the system's programs.
func (p *proc) tool(t tool) int {
	p.watched()
	if p.faults.starting != nil && !p.faults.starting(p) {
		return exitTerminated
	}
	if !p.faults.Garbled || garblers()[t.name] == nil {
		return p.lostOutput(t.run(p))
	}
	own, out := *p, &capture{}
	own.stdout = out
	status := t.run(&own)
	if text := string(out.bytes()); text != "" {
		p.printf("%s", garblers()[t.name](text))
	}
	return status
}
