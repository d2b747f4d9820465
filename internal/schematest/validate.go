// Package schematest holds tests' questions to the JSON schemas: is a document
// valid, and does a schema describe exactly the type that is written.
package schematest

import (
	"bytes"
	"fmt"
	"io/fs"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/macfleet/macfleet/docs/schemas"
)

// suffix is how the names of the files end.
const suffix = ".schema.json"

// Names returns the names of all schemas, such as "plan".
func Names() ([]string, error) {
	files, err := fs.Glob(schemas.Files, "*"+suffix)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, f := range files {
		names = append(names, strings.TrimSuffix(f, suffix))
	}
	return names, nil
}

// Validate returns an error unless a document follows the schema of that name.
// Formats, such as those of times, are checked too.
func Validate(name string, document []byte) error {
	raw, err := schemas.Files.ReadFile(name + suffix)
	if err != nil {
		return fmt.Errorf("there is no schema %q: %w", name, err)
	}
	parsed, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		return fmt.Errorf("schema %s: %w", name, err)
	}
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	if err := c.AddResource(name, parsed); err != nil {
		return fmt.Errorf("schema %s: %w", name, err)
	}
	schema, err := c.Compile(name)
	if err != nil {
		return fmt.Errorf("schema %s: %w", name, err)
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(document))
	if err != nil {
		return fmt.Errorf("no JSON document: %w", err)
	}
	return schema.Validate(value)
}

// ValidateLines returns an error unless every line of a text follows the schema.
func ValidateLines(name string, text []byte) error {
	n := 0
	for line := range bytes.Lines(text) {
		n++
		if err := Validate(name, line); err != nil {
			return fmt.Errorf("line %d: %w", n, err)
		}
	}
	if n == 0 {
		return fmt.Errorf("there is no line")
	}
	return nil
}
