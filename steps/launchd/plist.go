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
func Plist(j Job) string {
	var b strings.Builder
	b.Grow(usualSize)
	b.WriteString(head)
	for field, value := range reflect.ValueOf(j).Fields() {
		if value.IsZero() || value.Kind() == reflect.Map && value.Len() == 0 {
			continue
		}
		element(&b, "\t<key>", field.Tag.Get("plist"), "</key>\n")
		switch v := value.Interface().(type) {
		case string:
			element(&b, "\t<string>", v, "</string>\n")
		case bool:
			b.WriteString("\t<true/>\n")
		case int:
			b.WriteString("\t<integer>" + strconv.Itoa(v) + "</integer>\n")
		case []string:
			b.WriteString("\t<array>\n")
			for _, item := range v {
				element(&b, "\t\t<string>", item, "</string>\n")
			}
			b.WriteString("\t</array>\n")
		case map[string]string:
			b.WriteString("\t<dict>\n")
			for _, name := range slices.Sorted(maps.Keys(v)) {
				element(&b, "\t\t<key>", name, "</key>\n")
				element(&b, "\t\t<string>", v[name], "</string>\n")
			}
			b.WriteString("\t</dict>\n")
		}
	}
	b.WriteString(tail)
	return b.String()
}

// usualSize is the initial buffer size for an agent's property list.
const usualSize = 2 << 10

// element writes a value between its tags.
func element(b *strings.Builder, before, value, after string) {
	b.WriteString(before)
	if strings.ContainsFunc(value, special) {
		_ = xml.EscapeText(b, []byte(value)) // a strings.Builder takes everything
	} else {
		b.WriteString(value)
	}
	b.WriteString(after)
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
