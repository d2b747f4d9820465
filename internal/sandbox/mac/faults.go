package mac

import (
	"strings"
)

// Faults are the injected faults of a machine. The zero value is a healthy one.
type Faults struct {
	// CutOutput breaks the connection in the middle of each command's output, after the command has
	// ended.
	CutOutput bool
	// Garbled makes the tools that show settings print them in an unexpected form.
	Garbled bool

	starting func(*proc) bool // called before a tool runs; nil: all may run
}

// healthy has no faults.
func healthy() Faults { return Faults{} }

// garblers change a tool's output, by the tool's name.
func garblers() map[string]func(string) string {
	return map[string]func(string) string{
		// As a table in a different format.
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
		// With other text before it.
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
