package plan

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/fleet/inventory"
)

// Answer is what a probe's or a change's script said.
type Answer struct {
	Exit   int
	Stdout string
	Stderr string
}

// answerJSON is an answer in documents.
type answerJSON struct {
	Exit   int  `json:"exit"`
	Stdout text `json:"stdout"`
	Stderr text `json:"stderr"`
}

// MarshalJSON writes the answer with every byte that the host printed.
func (a Answer) MarshalJSON() ([]byte, error) {
	return unescaped(answerJSON{a.Exit, text(a.Stdout), text(a.Stderr)})
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (a *Answer) UnmarshalJSON(content []byte) error {
	var in answerJSON
	err := json.Unmarshal(content, &in)
	*a = Answer{in.Exit, string(in.Stdout), string(in.Stderr)}
	return err
}

// text is a JSON string, or {"base64": …} where it is not valid UTF-8: JSON
// cannot hold such bytes, and a host may print any.
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
		return fmt.Errorf("a text that is an object has no base64")
	}
	*t = text(b.Base64)
	return nil
}

// unescaped is a value in JSON, with <, > and & as they are.
func unescaped(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return b.Bytes(), err
}

// recording is what one host answered, as a file that a person may give away
// and a test may read: the answers alone, without names, addresses and keys.
type recording struct {
	Format    int                       `json:"recording"` // 1
	Macfleet  string                    `json:"macfleet"`  // version that asked
	OSVersion string                    `json:"os_version,omitempty"`
	Root      bool                      `json:"root"` // root was to be had without a password
	Answers   map[string]recordedAnswer `json:"answers"`
}

// recordedAnswer is one answer; Unread stands alone.
type recordedAnswer struct {
	answerJSON
	Unread text `json:"unread,omitempty"`
}

const recordingFormat = 1

// EncodeRecording returns the file of one observed server. What names the
// machine or its owner (names, ids, address, serial number, host key, marker)
// is left out or replaced by samples; what else a tool printed stands there as
// it was, so a person should read the file before it leaves the house. A host
// that was not observed is an error.
func EncodeRecording(s inventory.Server, seen HostSeen) ([]byte, error) {
	if seen.Trouble != nil {
		return nil, fmt.Errorf("record %s: nothing was observed: %s", s.Name, seen.Trouble.Text)
	}
	version, _ := seen.OSVersion.Get()
	r := recording{Format: recordingFormat, Macfleet: fleet.Version, OSVersion: version, Root: seen.Root, Answers: make(map[string]recordedAnswer)}
	hide := samples(s, seen)
	for id, answer := range seen.Facts {
		if strings.HasPrefix(id, "host.") {
			continue // which machine it is, and whose
		}
		a, ok := answer.Get()
		if !ok {
			r.Answers[id] = recordedAnswer{Unread: text(cmp.Or(hide.Replace(answer.Why()), "no reason was given"))}
			continue
		}
		r.Answers[id] = recordedAnswer{answerJSON: answerJSON{a.Exit, text(hide.Replace(a.Stdout)), text(hide.Replace(a.Stderr))}}
	}
	content, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("record %s: %w", s.Name, err)
	}
	return append(content, '\n'), nil
}

// samples replaces what names a server, the longest first, so that no part of a
// longer name is left over.
func samples(s inventory.Server, seen HostSeen) *strings.Replacer {
	type pair struct{ real, sample string }
	pairs := []pair{{s.Name, "acme-sample"}, {s.ID, "00000000-0000-4000-8000-000000000000"}, {s.Address, "192.0.2.1"}}
	if serial, ok := seen.Serial.Get(); ok {
		pairs = append(pairs, pair{serial, "C07SAMPLE1"})
	}
	if m, ok := seen.Marker.Get(); ok {
		pairs = append(pairs, pair{m.Name, "acme-sample"}, pair{m.ServerID, "00000000-0000-4000-8000-000000000000"})
	}
	slices.SortFunc(pairs, func(a, b pair) int { return cmp.Or(cmp.Compare(len(b.real), len(a.real)), cmp.Compare(a.real, b.real)) })
	var words []string
	for _, p := range pairs {
		if p.real != "" {
			words = append(words, p.real, p.sample)
		}
	}
	return strings.NewReplacer(words...)
}

// DecodeRecording reads such a file and returns the answers. Text of another
// format is an error.
func DecodeRecording(content []byte) (Facts, error) {
	var r recording
	if err := json.Unmarshal(content, &r); err != nil {
		return nil, fmt.Errorf("read a recording: %w", err)
	}
	if r.Format != recordingFormat {
		return nil, fmt.Errorf("read a recording: its format is %d, this macfleet reads %d", r.Format, recordingFormat)
	}
	if len(r.Answers) == 0 {
		return nil, errors.New("read a recording: it holds no answers")
	}
	facts := make(Facts, len(r.Answers))
	for id, a := range r.Answers {
		if a.Unread != "" {
			facts[id] = inventory.Unread[Answer](string(a.Unread))
			continue
		}
		facts[id] = inventory.Present(Answer{Exit: a.Exit, Stdout: string(a.Stdout), Stderr: string(a.Stderr)})
	}
	return facts, nil
}
