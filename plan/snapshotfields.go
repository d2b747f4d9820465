package plan

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/macfleet/macfleet/fleet/inventory"
)

// The types below are the snapshot file, key by key. They are apart from what
// plans are made of, so that a field can be renamed there without a change here;
// docs/schemas/snapshot.schema.json describes them.

type recordFile struct {
	FormatVersion   string    `json:"format_version"`
	MacfleetVersion string    `json:"macfleet_version"`
	Configuration   string    `json:"configuration"`
	Environment     string    `json:"environment"`
	Taken           time.Time `json:"taken"`
	snapshotFile
}

type snapshotFile struct {
	Servers []serverFile         `json:"servers"`
	Nodes   seenFile[[]nodeFile] `json:"nodes"`
	// Cluster is missing in files of a macfleet that did not look there.
	Cluster *seenFile[clusterFile] `json:"cluster,omitempty"`
	Pins    []pinFile              `json:"pins"`
	Hosts   map[string]hostFile    `json:"hosts"` // by server id
	Lock    *lockFile              `json:"lock,omitempty"`
}

type serverFile struct {
	ID        text      `json:"id"`
	Name      text      `json:"name"`
	Type      text      `json:"type"`
	Zone      text      `json:"zone"`
	Address   text      `json:"address"`
	OSFamily  text      `json:"os_family"`
	Status    text      `json:"status"`
	Delivered bool      `json:"delivered"`
	Created   time.Time `json:"created"`
}

type nodeFile struct {
	Name       text `json:"name"`
	ProviderID text `json:"provider_id"`
	Ready      text `json:"ready"`
	Cordoned   bool `json:"cordoned"`
	Why        text `json:"why"`

	Heard      time.Time       `json:"heard,omitzero"`
	UID        text            `json:"uid,omitempty"`
	CordonedBy text            `json:"cordoned_by,omitempty"`
	CordonRun  text            `json:"cordon_run,omitempty"`
	Hold       *inventory.Hold `json:"hold,omitempty"`
	HoldUnread text            `json:"hold_unread,omitempty"`
	Labels     map[string]text `json:"labels,omitempty"`
	Capacity   *capacityFile   `json:"capacity,omitempty"`
}

type capacityFile struct {
	CPU    int   `json:"cpu"`
	Memory int64 `json:"memory"`
	Pods   int   `json:"pods"`
}

type pinFile struct {
	ServerID text      `json:"server_id"`
	Name     text      `json:"name"`
	Key      text      `json:"key"`
	Since    time.Time `json:"since"`
}

type hostFile struct {
	Trouble     *troubleFile                    `json:"trouble,omitempty"`
	At          time.Time                       `json:"at,omitzero"`
	Path        text                            `json:"path"`
	Key         text                            `json:"key"`
	Fingerprint text                            `json:"fingerprint"`
	Pinned      bool                            `json:"pinned"`
	Root        bool                            `json:"root"`
	Serial      seenFile[text]                  `json:"serial"`
	OSVersion   seenFile[text]                  `json:"os_version"`
	Marker      seenFile[Marker]                `json:"marker"`
	Claim       seenFile[Claim]                 `json:"claim"`
	Pending     []text                          `json:"pending,omitempty"`
	Undone      *undoneFile                     `json:"undone,omitempty"`
	Entered     *enteredFile                    `json:"entered,omitempty"`
	Password    *passwordFile                   `json:"password,omitempty"`
	Facts       map[string]seenFile[answerFile] `json:"facts"` // by probe id
}

type troubleFile struct {
	Code   text `json:"code"`
	Text   text `json:"text"`
	Remedy text `json:"remedy"`
}

type undoneFile struct {
	Step text      `json:"step"`
	At   time.Time `json:"at"`
	Why  text      `json:"why"`
	Exit int       `json:"exit"`
}

// passwordFile says whether a password is known. Neither it nor what a refused
// one is known by is recorded.
type passwordFile struct {
	Source  text         `json:"source"`
	Trouble *troubleFile `json:"trouble,omitempty"`
}

type answerFile struct {
	Exit   int  `json:"exit"`
	Stdout text `json:"stdout"`
	Stderr text `json:"stderr"`
}

// text is a JSON string, or {"base64": …} where it is not valid UTF-8: JSON
// cannot hold such bytes, and a host may print any.
type text string

type bytesFile struct {
	Base64 []byte `json:"base64"`
}

// MarshalJSON writes the text, or its bytes.
func (t text) MarshalJSON() ([]byte, error) {
	if !utf8.ValidString(string(t)) {
		return json.Marshal(bytesFile{[]byte(t)})
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(string(t))
	return b.Bytes(), err
}

// UnmarshalJSON reads either form.
func (t *text) UnmarshalJSON(content []byte) error {
	if len(content) == 0 || content[0] != '{' {
		return json.Unmarshal(content, (*string)(t))
	}
	var b struct {
		Base64 *string `json:"base64"`
	}
	if err := json.Unmarshal(content, &b); err != nil {
		return err
	}
	if b.Base64 == nil {
		return fmt.Errorf("a text that is an object has no base64")
	}
	raw, err := base64.StdEncoding.DecodeString(*b.Base64)
	*t = text(raw)
	return err
}

// seenFile is an inventory.Seen. A file that says nothing says unread.
type seenFile[T any] struct {
	State string `json:"state"`           // present, absent, unread
	Value *T     `json:"value,omitempty"` // of present
	Why   text   `json:"why,omitempty"`   // of unread
}

const (
	statePresent = "present"
	stateAbsent  = "absent"
	stateUnread  = "unread"
)

// UnmarshalJSON reads an observation, and refuses one that is none of the three.
func (s *seenFile[T]) UnmarshalJSON(content []byte) error {
	type plain seenFile[T]
	if err := json.Unmarshal(content, (*plain)(s)); err != nil {
		return err
	}
	if !slices.Contains([]string{statePresent, stateAbsent, stateUnread}, s.State) {
		return fmt.Errorf("an observation has state %q; it is %s, %s or %s", s.State, statePresent, stateAbsent, stateUnread)
	}
	if (s.State == statePresent) != (s.Value != nil) {
		return fmt.Errorf("an observation with state %q must have a value if it is %s, and only then", s.State, statePresent)
	}
	return nil
}

// toFile and fromFile carry an observation over, its value by convert.
func toFile[A, B any](s inventory.Seen[A], convert func(A) B) seenFile[B] {
	if v, ok := s.Get(); ok {
		b := convert(v)
		return seenFile[B]{State: statePresent, Value: &b}
	}
	if s.IsAbsent() {
		return seenFile[B]{State: stateAbsent}
	}
	return seenFile[B]{State: stateUnread, Why: text(s.Why())}
}

func fromFile[A, B any](s seenFile[A], convert func(A) B) inventory.Seen[B] {
	switch s.State {
	case statePresent:
		return inventory.Present(convert(*s.Value))
	case stateAbsent:
		return inventory.Absent[B]()
	}
	return inventory.Unread[B](string(s.Why))
}

// each converts a list; the result is never nil, so that it is [] in JSON.
func each[A, B any](in []A, convert func(A) B) []B {
	out := make([]B, 0, len(in))
	for _, v := range in {
		out = append(out, convert(v))
	}
	return out
}
