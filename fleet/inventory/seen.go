package inventory

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
)

// Seen is an observation: present with its value, absent, or unread with the reason. The zero Seen is unread
// without a reason, so that nothing counts as absent by accident.
type Seen[T any] struct {
	state state
	value T
	why   string
}

type state int

const (
	unread state = iota
	absent
	present
)

// states are the names of the states in documents.
var states = []string{"unread", "absent", "present"}

// Present says that v was seen.
func Present[T any](v T) Seen[T] { return Seen[T]{state: present, value: v} }

// Absent says that the thing does not exist.
func Absent[T any]() Seen[T] { return Seen[T]{state: absent} }

// Unread says that it is unknown, and why.
func Unread[T any](why string) Seen[T] { return Seen[T]{why: why} }

// Get returns the value; ok is false when it is absent or unread.
func (s Seen[T]) Get() (v T, ok bool) { return s.value, s.state == present }

// IsAbsent reports whether the thing is known not to exist.
func (s Seen[T]) IsAbsent() bool { return s.state == absent }

// IsUnread reports whether it is unknown.
func (s Seen[T]) IsUnread() bool { return s.state == unread }

// Why returns the reason of an unread observation.
func (s Seen[T]) Why() string { return s.why }

// Map returns the observation of what do makes of the value.
func Map[T, U any](s Seen[T], do func(T) U) Seen[U] {
	out := Seen[U]{state: s.state, why: s.why}
	if s.state == present {
		out.value = do(s.value)
	}
	return out
}

// Inside returns pointers to the value and to the reason, for code that visits every text of a document. The
// value is nil if there is none.
func (s *Seen[T]) Inside() (value any, why *string) {
	if s.state != present {
		return nil, &s.why
	}
	return &s.value, &s.why
}

// seenJSON is an observation in documents.
type seenJSON[T any] struct {
	State string `json:"state"`           // present, absent, unread
	Value *T     `json:"value,omitempty"` // of present
	Why   string `json:"why,omitempty"`   // of unread
}

// MarshalJSON writes the state with the value or the reason. A nil list is [].
func (s Seen[T]) MarshalJSON() ([]byte, error) {
	out := seenJSON[T]{State: states[s.state], Why: s.why}
	if s.state == present {
		out.Value = &s.value
		if v := reflect.ValueOf(out.Value).Elem(); v.Kind() == reflect.Slice && v.IsNil() {
			v.Set(reflect.MakeSlice(v.Type(), 0, 0))
		}
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(out)
	return b.Bytes(), err
}

// UnmarshalJSON reads an observation, and refuses any other state.
func (s *Seen[T]) UnmarshalJSON(content []byte) error {
	var in seenJSON[T]
	if err := json.Unmarshal(content, &in); err != nil {
		return err
	}
	n := slices.Index(states, in.State)
	if n < 0 {
		return fmt.Errorf("invalid observation state %q: must be present, absent or unread", in.State)
	}
	if (state(n) == present) != (in.Value != nil) {
		return fmt.Errorf("observation with state %q: a value is required if it is present, and not allowed otherwise", in.State)
	}
	*s = Seen[T]{state: state(n)}
	if in.Value != nil {
		s.value = *in.Value
	} else if s.state == unread {
		s.why = in.Why
	}
	return nil
}
