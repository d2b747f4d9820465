package plan

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/fleet/inventory"
)

// Why a host's answer to a probe is unread.
const (
	ProbeTimedOut   = "timed out and was stopped"
	AnswerTruncated = "the answer was truncated"
)

// ServiceUnread begins why a step that needs the CI service's list could not compare; the code follows.
const ServiceUnread = "the CI service could not be read"

// Answer is the output of a probe's or a change's script.
type Answer struct {
	Exit   int
	Stdout string
	Stderr string
}

// answerJSON is the form of an answer in documents.
type answerJSON struct {
	Exit   int  `json:"exit"`
	Stdout text `json:"stdout"`
	Stderr text `json:"stderr"`
	Unread text `json:"unread,omitempty"` // in recordings: why there is no answer; the other fields are empty then
}

// MarshalJSON writes the answer with every byte that the host printed.
func (a Answer) MarshalJSON() ([]byte, error) {
	return unescaped(answerJSON{Exit: a.Exit, Stdout: text(a.Stdout), Stderr: text(a.Stderr)})
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (a *Answer) UnmarshalJSON(content []byte) error {
	var in answerJSON
	err := json.Unmarshal(content, &in)
	*a = Answer{in.Exit, string(in.Stdout), string(in.Stderr)}
	return err
}

// text is a JSON string, or {"base64": …} where it is not valid UTF-8: JSON cannot hold such bytes, and a
// host may print any.
type text string

// MarshalJSON writes the text, or its bytes.
func (t text) MarshalJSON() ([]byte, error) {
	if !utf8.ValidString(string(t)) {
		return json.Marshal(map[string][]byte{"base64": []byte(t)})
	}
	return unescaped(string(t))
}

// UnmarshalJSON reads either form.
func (t *text) UnmarshalJSON(content []byte) error {
	if len(content) == 0 || content[0] != '{' {
		return json.Unmarshal(content, (*string)(t))
	}
	var b struct {
		Base64 []byte `json:"base64"`
	}
	if err := json.Unmarshal(content, &b); err != nil {
		return err
	}
	if b.Base64 == nil {
		return fmt.Errorf("a text that is an object needs the field base64")
	}
	*t = text(b.Base64)
	return nil
}

// unescaped encodes a value as JSON without escaping <, > and &.
func unescaped(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return b.Bytes(), err
}

// recording holds one host's answers without names, addresses and keys, so that it can be shared and used in
// tests.
type recording struct {
	Format    int                   `json:"recording"` // 1
	Macfleet  string                `json:"macfleet"`  // version that recorded it
	OSVersion string                `json:"os_version,omitempty"`
	Root      bool                  `json:"root"` // passwordless sudo worked
	Answers   map[string]answerJSON `json:"answers"`
}

const recordingFormat = 1

// EncodeRecording returns the recording of one observed server. What identifies the machine or its owner is
// left out or replaced by samples. Other output of tools is kept as printed, so read the file before sharing
// it.
func EncodeRecording(s inventory.Server, seen HostSeen) ([]byte, error) {
	if seen.Trouble != nil {
		return nil, fmt.Errorf("record %s: nothing was observed: %s", s.Name, seen.Trouble.Text)
	}
	version, _ := seen.OSVersion.Get()
	r := recording{Format: recordingFormat, Macfleet: fleet.Version, OSVersion: version, Root: seen.Root, Answers: make(map[string]answerJSON)}
	hide := samples(s, seen)
	for id, answer := range seen.Facts {
		switch a, ok := answer.Get(); {
		case strings.HasPrefix(id, "host."): // identifies the machine and its owner
		case ok:
			r.Answers[id] = answerJSON{Exit: a.Exit, Stdout: text(hide.Replace(a.Stdout)), Stderr: text(hide.Replace(a.Stderr))}
		default:
			r.Answers[id] = answerJSON{Unread: text(cmp.Or(hide.Replace(answer.Why()), "no reason given"))}
		}
	}
	content, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("record %s: %w", s.Name, err)
	}
	return append(content, '\n'), nil
}

// samples replaces identifying texts, longest first, so that no part of a longer name is left over.
func samples(s inventory.Server, seen HostSeen) *strings.Replacer {
	pairs := [][2]string{{s.Name, "acme-sample"}, {s.ID, "00000000-0000-4000-8000-000000000000"}, {s.Address, "192.0.2.1"}}
	serial, _ := seen.Serial.Get()
	m, _ := seen.Marker.Get()
	pairs = append(pairs, [2]string{serial, "C07SAMPLE1"}, [2]string{m.Name, pairs[0][1]}, [2]string{m.ServerID, pairs[1][1]})
	slices.SortFunc(pairs, func(a, b [2]string) int {
		return cmp.Or(cmp.Compare(len(b[0]), len(a[0])), cmp.Compare(a[0], b[0]))
	})
	var words []string
	for _, p := range pairs {
		if p[0] != "" {
			words = append(words, p[:]...)
		}
	}
	return strings.NewReplacer(words...)
}
