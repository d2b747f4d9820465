package plan

import (
	"cmp"
	"maps"
	"path"
	"runtime"
	"slices"
	"strings"
)

// Code is the stable name of a reason or a trouble: what programs, alarms and ignore
// blocks go by. It is declared once, beside the code that raises it; the zero Code is none.
type Code struct{ name string }

// Severity is how bad what a code names is for the work on a host.
type Severity string

// The severities, from the worst.
const (
	Critical Severity = "critical" // the host does no work or may not be trusted, or soon, or its jobs are not held back
	Warning  Severity = "warning"  // it works, and not as is wanted
	Notice   Severity = "notice"   // it works as well as before
	NotDrift Severity = ""         // only plan and apply say it: of what is wanted, or of a run
)

// Severities lists those of drift, from the worst.
func Severities() []Severity { return []Severity{Critical, Warning, Notice} }

// declaration is what is said of a code where it is declared.
type declaration struct {
	severity        Severity
	meaning, remedy string
	home            uintptr
}

// declared is filled while packages are initialised, and read afterwards.
var declared = make(map[string]declaration)

// NewCode declares a code. The remedy is what helps with a trouble of that code wherever
// it is raised; a code without one names a difference that apply removes.
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

// String returns the name, as it stands in documents.
func (c Code) String() string { return c.name }

// Equal reports whether two codes are one. It is ==, for packages that compare by method.
func (c Code) Equal(other Code) bool { return c == other }

// Severity returns how bad it is; of a code that this program does not declare, a warning.
func (c Code) Severity() Severity {
	if d, ok := declared[c.name]; ok {
		return d.severity
	}
	return Warning
}

// Meaning says in a few words what the code names.
func (c Code) Meaning() string { return declared[c.name].meaning }

// Remedy returns what helps; empty for a difference that apply removes.
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

// Trouble returns a trouble of that code with its standing remedy, or with one that says more.
func (c Code) Trouble(text string, remedy ...string) *Trouble {
	return &Trouble{Code: c, Text: text, Remedy: cmp.Or(strings.Join(remedy, ""), c.Remedy())}
}

// MarshalText returns the name.
func (c Code) MarshalText() ([]byte, error) { return []byte(c.name), nil }

// UnmarshalText takes any name: a record may be of a newer macfleet, which knows more codes.
func (c *Code) UnmarshalText(text []byte) error {
	c.name = string(text)
	return nil
}
