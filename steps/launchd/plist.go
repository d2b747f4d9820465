// Package launchd renders the property lists of jobs and reads them, and what
// launchctl prints, back. It does no I/O.
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

// Job is the description of a job, as far as macfleet's jobs have one.
type Job struct {
	Label       string            `plist:"Label"`
	User        string            `plist:"UserName"`         // whom it runs as; empty: root
	Arguments   []string          `plist:"ProgramArguments"` // the program first, by its path
	Environment map[string]string `plist:"EnvironmentVariables"`
	RunAtLoad   bool              `plist:"RunAtLoad"`
	KeepAlive   bool              `plist:"KeepAlive"`           // it comes back after any end
	Abandon     bool              `plist:"AbandonProcessGroup"` // what it has started outlives it, such as virtual machines
	Throttle    int               `plist:"ThrottleInterval"`    // seconds between two starts
	Stdout      string            `plist:"StandardOutPath"`
	Stderr      string            `plist:"StandardErrorPath"`
}

// Program returns the path of what the job runs.
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

// Plist renders a job: keys in the order of its fields, values escaped, what is empty left
// out. The same job gives the same bytes.
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

// usualSize is room in bytes for the property list of an agent, of which a plan of
// a big fleet renders one for each host.
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

// special reports whether XML may write a character otherwise. Most values have none.
func special(r rune) bool {
	return r < ' ' || r > '~' || strings.ContainsRune(`<>&'"`, r)
}

// ErrNotOurs says that a property list holds what macfleet's renderer never
// writes, so that nobody knows what the rest of it does.
var ErrNotOurs = errors.New("it is no property list as macfleet writes it")

// ParsePlist reads what Plist rendered. Another form is an error that wraps
// ErrNotOurs: a key that is not understood could turn the meaning of the others.
func ParsePlist(document string) (Job, error) {
	if !strings.HasPrefix(document, head) || !strings.HasSuffix(document, tail) {
		return Job{}, ErrNotOurs
	}
	var j Job
	if err := plist.Unmarshal([]byte(document), &j); err != nil {
		return Job{}, fmt.Errorf("%w: %w", ErrNotOurs, err)
	}
	if Plist(j) != document {
		return Job{}, ErrNotOurs
	}
	return j, nil
}
