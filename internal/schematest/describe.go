package schematest

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/macfleet/macfleet/docs/schemas"
)

// node is the part of a schema that is compared with a type.
type node struct {
	Ref         string           `json:"$ref"`
	Description string           `json:"description"`
	Type        string           `json:"type"`
	Format      string           `json:"format"`
	OneOf       []node           `json:"oneOf"`
	Required    []string         `json:"required"`
	Properties  map[string]node  `json:"properties"`
	Additional  *json.RawMessage `json:"additionalProperties"`
	Items       *node            `json:"items"`
	Defs        map[string]node  `json:"$defs"`
}

// comparison walks a type and a schema side by side.
type comparison struct {
	defs   map[string]node
	used   map[string]bool
	seen   map[reflect.Type]bool
	faults []string
}

// Describe returns what is wrong with the schema of that name as a description
// of a type's JSON: keys that are missing, too many, of another type, without a
// description or wrongly required, objects that admit unknown keys, and
// definitions that nothing uses. A type that writes its own JSON is compared no
// further.
func Describe(name string, of reflect.Type) []string {
	raw, err := schemas.Files.ReadFile(name + suffix)
	if err != nil {
		return []string{err.Error()}
	}
	var root node
	if err := json.Unmarshal(raw, &root); err != nil {
		return []string{err.Error()}
	}
	c := comparison{defs: root.Defs, used: make(map[string]bool), seen: make(map[reflect.Type]bool)}
	c.compare(name, root, of)
	for _, def := range slices.Sorted(maps.Keys(root.Defs)) {
		if !c.used[def] {
			c.fault(name, "nothing uses the definition %s", def)
		}
	}
	return c.faults
}

func (c *comparison) fault(at, format string, args ...any) {
	c.faults = append(c.faults, at+": "+fmt.Sprintf(format, args...))
}

// compare looks at one value.
func (c *comparison) compare(at string, n node, t reflect.Type) {
	if n.Ref != "" {
		def := strings.TrimPrefix(n.Ref, "#/$defs/")
		target, ok := c.defs[def]
		if !ok {
			c.fault(at, "there is no definition %s", n.Ref)
			return
		}
		c.used[def] = true
		n = target
	}
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	marshaler := reflect.TypeFor[json.Marshaler]()
	switch {
	case t == reflect.TypeFor[time.Time]():
		c.kind(at, n, "string")
		if n.Format != "date-time" {
			c.fault(at, "a time has format %q", n.Format)
		}
	case t.Implements(marshaler):
		if len(n.OneOf) == 0 && n.Type == "" {
			c.fault(at, "no form is described")
		}
	case t.Kind() == reflect.Struct:
		c.object(at, n, t)
	case t.Kind() == reflect.Map:
		c.kind(at, n, "object")
		c.compare(at+".*", c.values(at, n), t.Elem())
	case t.Kind() == reflect.Slice:
		c.kind(at, n, "array")
		if n.Items == nil {
			c.fault(at, "the items are not described")
			return
		}
		c.compare(at+"[]", *n.Items, t.Elem())
	default:
		c.kind(at, n, map[reflect.Kind]string{reflect.String: "string", reflect.Bool: "boolean", reflect.Int: "integer", reflect.Int64: "integer", reflect.Float64: "number"}[t.Kind()])
	}
}

func (c *comparison) kind(at string, n node, want string) {
	if n.Type != want {
		c.fault(at, "type %q, it is written as %q", n.Type, want)
	}
}

// values returns what is said of the values of a map.
func (c *comparison) values(at string, n node) node {
	var out node
	if n.Additional == nil || json.Unmarshal(*n.Additional, &out) != nil {
		c.fault(at, "the values are not described")
	}
	return out
}

// object compares the keys of an object with the fields of a struct.
func (c *comparison) object(at string, n node, t reflect.Type) {
	c.kind(at, n, "object")
	if n.Additional == nil || string(*n.Additional) != "false" {
		c.fault(at, "unknown keys are not refused")
	}
	if c.seen[t] {
		return
	}
	c.seen[t] = true
	described := maps.Clone(n.Properties)
	for _, f := range fieldsOf(t) {
		p, ok := described[f.name]
		if !ok {
			c.fault(at, "the key %s is not described", f.name)
			continue
		}
		delete(described, f.name)
		if strings.TrimSpace(p.Description) == "" {
			c.fault(at, "the key %s has no description", f.name)
		}
		if slices.Contains(n.Required, f.name) == f.optional {
			c.fault(at, "the key %s: optional is %t, and required says otherwise", f.name, f.optional)
		}
		c.compare(at+"."+f.name, p, f.of)
	}
	for _, key := range slices.Sorted(maps.Keys(described)) {
		c.fault(at, "no field writes the key %s", key)
	}
}

// field is a struct's field as JSON has it.
type field struct {
	name     string
	optional bool
	of       reflect.Type
}

// fieldsOf returns the fields that are written, embedded structs' among them.
func fieldsOf(t reflect.Type) []field {
	var out []field
	for i := range t.NumField() {
		f := t.Field(i)
		tag, tagged := f.Tag.Lookup("json")
		name, rest, _ := strings.Cut(tag, ",")
		switch {
		case f.Anonymous && !tagged:
			out = append(out, fieldsOf(f.Type)...)
		case name == "-" || !f.IsExported():
		default:
			out = append(out, field{name, strings.Contains(rest, "omit"), f.Type})
		}
	}
	return out
}
