// Package launchd renders and parses property lists of jobs, and parses the output of
// launchctl print. It does no I/O.
package launchd

import (
	"encoding/xml"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/micromdm/plist"
)

// Job is a job's property list, limited to the keys that macfleet's jobs use.
type Job struct {
	Label       string            `plist:"Label"`
	User        string            `plist:"UserName"`         // empty: root
	Arguments   []string          `plist:"ProgramArguments"` // the program first, by its path
	Environment map[string]string `plist:"EnvironmentVariables"`
	RunAtLoad   bool              `plist:"RunAtLoad"`
	KeepAlive   bool              `plist:"KeepAlive"`           // launchd restarts it whenever it exits
	Abandon     bool              `plist:"AbandonProcessGroup"` // child processes, such as virtual machines, outlive the job
	Throttle    int               `plist:"ThrottleInterval"`    // minimum seconds between two starts
	Stdout      string            `plist:"StandardOutPath"`
	Stderr      string            `plist:"StandardErrorPath"`
}

// Program returns the path of the job's program.
func (j Job) Program() string {
	if len(j.Arguments) == 0 {
		return ""
	}
	return j.Arguments[0]
}

// Agent is the property list of a job in a user's session, limited to the keys that macfleet's jobs use.
type Agent struct {
	Label       string            `plist:"Label"`
	Arguments   []string          `plist:"ProgramArguments"`
	User        string            `plist:"UserName"` // as svc.sh of GitHub's runner writes it; launchd ignores it here
	Folder      string            `plist:"WorkingDirectory"`
	Environment map[string]string `plist:"EnvironmentVariables"`
	RunAtLoad   bool              `plist:"RunAtLoad"`
	KeepAlive   map[string]bool   `plist:"KeepAlive"`          // conditions under which launchd restarts it
	ExitTimeOut int               `plist:"ExitTimeOut"`        // seconds from SIGTERM to SIGKILL
	Limits      map[string]int    `plist:"SoftResourceLimits"` // for example NumberOfFiles
	ProcessType string            `plist:"ProcessType"`
	Session     bool              `plist:"SessionCreate"` // it gets its own security session, with its own keychains
	Stdout      string            `plist:"StandardOutPath"`
	Stderr      string            `plist:"StandardErrorPath"`
}

// AgentPlist renders a job of a user's session, as Plist does.
func AgentPlist(a Agent) string { return render(reflect.ValueOf(a)) }

const (
	head = `<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
<plist version="1.0">
<dict>
`
	tail = "</dict>\n</plist>\n"
)

// Plist renders a job: keys in the order of its fields, values escaped, empty ones omitted.
// Equal jobs give equal bytes.
func Plist(j Job) string { return render(reflect.ValueOf(j)) }

func render(job reflect.Value) string {
	var room [usualSize]byte
	b := append(room[:0], head...)
	for field, value := range job.Fields() {
		if value.IsZero() || value.Kind() == reflect.Map && value.Len() == 0 {
			continue
		}
		b = element(b, "\t<key>", field.Tag.Get("plist"), "</key>\n")
		switch value.Kind() { // without the allocation of an interface
		case reflect.String:
			b = element(b, "\t<string>", value.String(), "</string>\n")
			continue
		case reflect.Bool:
			b = append(b, "\t"+boolean(value.Bool())+"\n"...)
			continue
		}
		switch v := value.Interface().(type) {
		case int:
			b = append(b, "\t<integer>"+strconv.Itoa(v)+"</integer>\n"...)
		case []string:
			b = append(b, "\t<array>\n"...)
			for _, item := range v {
				b = element(b, "\t\t<string>", item, "</string>\n")
			}
			b = append(b, "\t</array>\n"...)
		case map[string]string:
			b = dictionary(b, v, func(b []byte, text string) []byte { return element(b, "\t\t<string>", text, "</string>\n") })
		case map[string]bool:
			b = dictionary(b, v, func(b []byte, is bool) []byte { return append(b, "\t\t"+boolean(is)+"\n"...) })
		case map[string]int:
			b = dictionary(b, v, func(b []byte, n int) []byte { return append(b, "\t\t<integer>"+strconv.Itoa(n)+"</integer>\n"...) })
		}
	}
	return string(append(b, tail...))
}

func boolean(is bool) string {
	if is {
		return "<true/>"
	}
	return "<false/>"
}

// dictionary appends the entries of a map in the order of their keys.
func dictionary[V any](b []byte, all map[string]V, value func([]byte, V) []byte) []byte {
	b = append(b, "\t<dict>\n"...)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		b = value(element(b, "\t\t<key>", name, "</key>\n"), all[name])
	}
	return append(b, "\t</dict>\n"...)
}

// usualSize is room for most property lists, before they become strings of exact size.
const usualSize = 2 << 10

// element appends a value between its tags.
func element(b []byte, before, value, after string) []byte {
	b = append(b, before...)
	if strings.ContainsFunc(value, special) {
		var escaped strings.Builder
		_ = xml.EscapeText(&escaped, []byte(value)) // a strings.Builder takes everything
		value = escaped.String()
	}
	return append(append(b, value...), after...)
}

// special reports whether XML may need to escape a character. Most values have none.
func special(r rune) bool {
	return r < ' ' || r > '~' || strings.ContainsRune(`<>&'"`, r)
}

// ErrNotManaged reports a property list that macfleet's renderer did not write.
var ErrNotManaged = errors.New("not a property list written by macfleet")

// ParsePlist parses what Plist rendered. Anything else is an error that wraps ErrNotManaged,
// because an unknown key could change the meaning of the others.
func ParsePlist(document string) (Job, error) {
	if !strings.HasPrefix(document, head) || !strings.HasSuffix(document, tail) {
		return Job{}, ErrNotManaged
	}
	var j Job
	if err := plist.Unmarshal([]byte(document), &j); err != nil {
		return Job{}, fmt.Errorf("%w: %w", ErrNotManaged, err)
	}
	if Plist(j) != document {
		return Job{}, ErrNotManaged
	}
	return j, nil
}
