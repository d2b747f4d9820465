// Package schematest holds tests' questions to the JSON schemas: is a document
// valid, and does a schema describe exactly the type that is written.
package schematest

import (
	"bytes"
	"fmt"
	"io/fs"
	"strings"
	"sync"

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
		if name := strings.TrimSuffix(f, suffix); name != defs {
			names = append(names, name)
		}
	}
	return names, nil
}

// Validate returns an error unless a document follows the schema of that name.
// Formats, such as those of times, are checked too.
func Validate(name string, document []byte) error {
	schema, err := compiled(name)
	if err != nil {
		return fmt.Errorf("schema %s: %w", name, err)
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(document))
	if err != nil {
		return fmt.Errorf("no JSON document: %w", err)
	}
	return schema.Validate(value)
}

// compilation holds the schemas that were read. A compiler is for one user at a time.
var compilation struct {
	sync.Mutex
	*jsonschema.Compiler
}

func compiled(name string) (*jsonschema.Schema, error) {
	compilation.Lock()
	defer compilation.Unlock()
	if compilation.Compiler == nil {
		c := jsonschema.NewCompiler()
		c.AssertFormat()
		files, err := fs.Glob(schemas.Files, "*"+suffix)
		if err != nil {
			return nil, err
		}
		for _, file := range files {
			raw, err := schemas.Files.ReadFile(file)
			if err != nil {
				return nil, err
			}
			parsed, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
			if err != nil {
				return nil, err
			}
			if err := c.AddResource(file, parsed); err != nil {
				return nil, err
			}
		}
		compilation.Compiler = c
	}
	return compilation.Compile(name + suffix)
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
