package plan

import (
	"cmp"
	"maps"
	"path"
	"runtime"
	"slices"
	"strings"
)

// Code is the stable name of a reason or a trouble, for programs, alerts and ignore blocks. It is declared
// once, next to the code that raises it; the zero Code means none.
type Code struct{ name string }

// Severity is how much a difference affects the work on a host.
type Severity string

// The severities, from the worst.
const (
	Critical Severity = "critical" // the host does no work, cannot be trusted, will fail soon, or does not contain its jobs
	Warning  Severity = "warning"  // it works, but not as configured
	Notice   Severity = "notice"   // it works as before
	NotDrift Severity = ""         // never drift: raised only by plan and apply
)

// Severities lists those of drift, from the worst.
func Severities() []Severity { return []Severity{Critical, Warning, Notice} }

// declaration is what a code was declared with.
type declaration struct {
	severity        Severity
	meaning, remedy string
	home            uintptr
}

// declared is filled during package initialisation and only read afterwards.
var declared = make(map[string]declaration)

// NewCode declares a code. The remedy applies to every trouble of that code; a code without one names a
// difference that apply removes.
func NewCode(name string, severity Severity, meaning string, remedy ...string) Code {
	if _, twice := declared[name]; twice || name == "" {
		panic("plan: the code " + name + " is declared twice or has no name")
	}
	caller, _, _, _ := runtime.Caller(1)
	declared[name] = declaration{severity, meaning, strings.Join(remedy, ""), caller}
	return Code{name}
}

// Codes returns every code that this program declares, sorted.
func Codes() []Code {
	var out []Code
	for _, name := range slices.Sorted(maps.Keys(declared)) {
		out = append(out, Code{name})
	}
	return out
}

// String returns the name, as in documents.
func (c Code) String() string { return c.name }

// Equal is ==, for packages that compare by method.
func (c Code) Equal(other Code) bool { return c == other }

// Severity returns the declared severity; a warning for a code that this program does not declare.
func (c Code) Severity() Severity {
	if d, ok := declared[c.name]; ok {
		return d.severity
	}
	return Warning
}

// Meaning describes in a few words what the code names.
func (c Code) Meaning() string { return declared[c.name].meaning }

// Remedy returns the remedy; empty for a difference that apply removes.
func (c Code) Remedy() string { return declared[c.name].remedy }

// Home returns the package and the file that declare the code, such as steps/power.
func (c Code) Home() string {
	f := runtime.FuncForPC(declared[c.name].home)
	if f == nil {
		return ""
	}
	file, _ := f.FileLine(declared[c.name].home)
	pkg := strings.TrimSuffix(f.Name(), ".init")
	return path.Join(strings.TrimPrefix(pkg, "github.com/macfleet/macfleet/"), strings.TrimSuffix(path.Base(file), ".go"))
}

// Trouble returns a trouble of that code with its declared remedy or a more specific one.
func (c Code) Trouble(text string, remedy ...string) *Trouble {
	return &Trouble{Code: c, Text: text, Remedy: cmp.Or(strings.Join(remedy, ""), c.Remedy())}
}

// MarshalText returns the name.
func (c Code) MarshalText() ([]byte, error) { return []byte(c.name), nil }

// UnmarshalText accepts any name: a record may come from a newer macfleet, which has more codes.
func (c *Code) UnmarshalText(text []byte) error {
	c.name = string(text)
	return nil
}
