// Package wire holds the documents that macfleet writes and reads: observations, plans,
// plan files and events. The types of plan and inventory carry the JSON keys. This package
// adds the envelope, decides how strictly documents are read, and removes secrets.
package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/macfleet/macfleet/fleet"
)

// Format is the version of every document that macfleet prints. Readers ignore unknown keys
// of the same major version and refuse another one.
const Format = "1.0"

// Head is the beginning of a document.
type Head struct {
	FormatVersion   string `json:"format_version"`   // version of this format: a reader ignores unknown keys and refuses another major version
	MacfleetVersion string `json:"macfleet_version"` // version of the macfleet that wrote it
}

// OwnedHead is the head of a document about a configuration.
type OwnedHead struct {
	Head
	Configuration string `json:"configuration"` // name of the configuration
	Environment   string `json:"environment"`   // empty: the configuration has none
}

// NewHead returns the head of a document that this macfleet prints.
func NewHead() Head { return Head{Format, fleet.Version} }

// HeadOf returns the head of a document about a configuration.
func HeadOf(o fleet.Owner) OwnedHead { return OwnedHead{NewHead(), o.Name, o.Environment} }

// Owner returns the configuration and environment of the document.
func (h OwnedHead) Owner() fleet.Owner {
	return fleet.Owner{Name: h.Configuration, Environment: h.Environment}
}

// Write prints one JSON document.
func Write(out io.Writer, document any) error {
	content, err := encode(document, "  ")
	if err == nil {
		_, err = out.Write(content)
	}
	if err != nil {
		return fmt.Errorf("write JSON: %w", err)
	}
	return nil
}

func encode(document any, indent string) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", indent)
	if err := enc.Encode(document); err != nil {
		return nil, fmt.Errorf("encode JSON: %w", err)
	}
	return Visible(b.Bytes()), nil
}

// decode reads one JSON object and insists that nothing follows it. strict refuses
// keys that the object does not have.
func decode(content []byte, into any, strict bool) error {
	dec := json.NewDecoder(bytes.NewReader(content))
	if strict {
		dec.DisallowUnknownFields()
	}
	err := dec.Decode(into)
	var wrong *json.UnmarshalTypeError
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return errors.New("it is truncated")
	case errors.As(err, &wrong):
		return fmt.Errorf("%s is a JSON %s", wrong.Field, wrong.Value)
	case err != nil:
		return err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return errors.New("there is data after the JSON object")
	}
	return nil
}

// Each returns f of each element. It never returns nil, which JSON would print as null.
func Each[T, U any](all []T, f func(T) U) []U {
	out := make([]U, 0, len(all))
	for _, x := range all {
		out = append(out, f(x))
	}
	return out
}
