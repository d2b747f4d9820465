// Package schematest checks documents against the JSON schemas, and the schemas against the types that
// are written.
package schematest

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/macfleet/macfleet/docs/schemas"
)

// suffix is the end of the files' names.
const suffix = ".schema.json"

// compiled holds all schemas by name.
var compiled = sync.OnceValues(func() (map[string]*jsonschema.Schema, error) {
	c, out := jsonschema.NewCompiler(), make(map[string]*jsonschema.Schema)
	c.AssertFormat()
	files, err := fs.Glob(schemas.Files, "*"+suffix)
	for _, file := range files {
		raw, rerr := schemas.Files.ReadFile(file)
		parsed, perr := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
		err = errors.Join(err, rerr, perr, c.AddResource(file, parsed))
	}
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		if out[strings.TrimSuffix(file, suffix)], err = c.Compile(file); err != nil {
			return nil, err
		}
	}
	delete(out, defs) // the definitions
	return out, nil
})

// Names returns the names of all schemas, such as "plan".
func Names() ([]string, error) {
	all, err := compiled()
	return slices.Sorted(maps.Keys(all)), err
}

// Validate returns an error unless a document is valid. Formats, such as those of times, are checked
// too.
func Validate(name string, document []byte) error {
	all, err := compiled()
	if err != nil {
		return fmt.Errorf("schemas: %w", err)
	}
	schema, ok := all[name]
	if !ok {
		return fmt.Errorf("unknown schema %s", name)
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(document))
	if err != nil {
		return fmt.Errorf("not a JSON document: %w", err)
	}
	return schema.Validate(value)
}

// ValidateLines returns an error unless every line of a text is a valid document.
func ValidateLines(name string, text []byte) error {
	n := 0
	for line := range bytes.Lines(text) {
		n++
		if err := Validate(name, line); err != nil {
			return fmt.Errorf("line %d: %w", n, err)
		}
	}
	if n == 0 {
		return fmt.Errorf("the text is empty")
	}
	return nil
}
