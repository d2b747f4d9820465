package schematest

import (
	"bytes"
	"cmp"
	"encoding"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"
)

// Document is a kind of document. Its schema is generated from its type.
type Document struct {
	Name    string       // of the schema, such as "plan"
	Title   string       // the command that prints it
	Of      reflect.Type // the type that is written
	Version string       // major version of its format; empty: it has none
}

// defs is the file with the definitions that all documents share.
const defs = "defs"

// schema is a JSON schema, or part of one.
type schema = map[string]any

// Generate returns the schemas of documents by file name. Each type is described once, in a shared
// file. Keys come from the struct tags, descriptions from the comments, and the values of a string
// type from its constants, unless the type is open.
func Generate(docs []Document, special map[reflect.Type]map[string]any, open ...reflect.Type) (map[string][]byte, error) {
	g := generator{defs: schema{}, special: special, open: make(map[reflect.Type]bool)}
	for _, t := range open {
		g.open[t] = true
	}
	files := make(map[string][]byte)
	for _, d := range docs {
		s := g.of(d.Of)
		s["$schema"] = draft
		s["title"] = d.Title
		if d.Version != "" {
			s["properties"] = schema{"format_version": schema{"pattern": `^` + d.Version + `\.[0-9]+$`}}
		}
		files[d.Name+suffix] = written(s)
	}
	files[defs+suffix] = written(schema{"$schema": draft, "title": "The parts of macfleet's documents", "$defs": g.defs})
	return files, g.err
}

const draft = "https://json-schema.org/draft/2020-12/schema"

// written formats a schema for its file: one line for each key of an object.
func written(s schema) []byte {
	var b bytes.Buffer
	write(&b, s, "")
	b.WriteByte('\n')
	return b.Bytes()
}

func write(b *bytes.Buffer, s schema, indent string) {
	b.WriteString("{")
	for i, key := range slices.Sorted(maps.Keys(s)) {
		if i > 0 {
			b.WriteString(",")
		}
		fmt.Fprintf(b, "\n%s  %s: ", indent, compact(key))
		if inner, ok := s[key].(schema); ok && (key == "$defs" || key == "properties" || inner["properties"] != nil) {
			write(b, inner, indent+"  ")
		} else {
			b.WriteString(compact(s[key]))
		}
	}
	fmt.Fprintf(b, "\n%s}", indent)
}

func compact(v any) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		panic(err) // it consists of maps, lists and strings
	}
	return strings.TrimSpace(b.String())
}

type generator struct {
	defs    schema
	special map[reflect.Type]map[string]any
	open    map[reflect.Type]bool // string types that may have other values than their constants
	err     error
}

// fail keeps the first error.
func (g *generator) fail(err error) { g.err = cmp.Or(g.err, err) }

// of returns the schema of a type's JSON.
func (g *generator) of(t reflect.Type) schema {
	if t.Kind() == reflect.Pointer {
		return g.of(t.Elem())
	}
	if s, ok := g.special[t]; ok {
		return g.named(t, func() schema { return s })
	}
	switch {
	case t == reflect.TypeFor[time.Time]():
		return schema{"type": "string", "format": "date-time"}
	case strings.HasPrefix(t.Name(), "Seen["):
		return g.seen(t)
	case t.Implements(reflect.TypeFor[encoding.TextMarshaler]()):
		return g.text(t)
	case t.Implements(reflect.TypeFor[json.Marshaler]()):
		g.fail(fmt.Errorf("%s writes its own JSON and has no special schema", t))
	}
	switch t.Kind() {
	case reflect.Struct:
		return g.named(t, func() schema { return g.object(t) })
	case reflect.Slice:
		return schema{"type": "array", "items": g.of(t.Elem())}
	case reflect.Map:
		return schema{"type": "object", "additionalProperties": g.of(t.Elem())}
	case reflect.String:
		return g.text(t)
	case reflect.Bool:
		return schema{"type": "boolean"}
	case reflect.Int, reflect.Int64:
		return schema{"type": "integer"}
	case reflect.Float64:
		return schema{"type": "number"}
	}
	g.fail(fmt.Errorf("%s: no schema for a %s", t, t.Kind()))
	return nil
}

// named describes a type once, and returns a reference to it.
func (g *generator) named(t reflect.Type, describe func() schema) schema {
	if t.Name() == "" {
		return describe()
	}
	name := t.String()
	if _, ok := g.defs[name]; !ok {
		g.defs[name] = schema{} // a type may refer to itself
		g.defs[name] = describe()
	}
	return schema{"$ref": defs + suffix + "#/$defs/" + name}
}

func (g *generator) seen(t reflect.Type) schema {
	get, _ := t.MethodByName("Get")
	state := func(name string, rest schema, required ...string) schema {
		rest["state"] = schema{"const": name}
		return schema{"type": "object", "additionalProperties": false, "required": append([]string{"state"}, required...), "properties": rest}
	}
	return schema{"oneOf": []schema{state("present", schema{"value": g.of(get.Type.Out(0))}, "value"),
		state("absent", schema{}), state("unread", schema{"why": schema{"type": "string"}})}}
}

// text is the schema of a string type: its values if all are known.
func (g *generator) text(t reflect.Type) schema {
	s := schema{"type": "string"}
	if t.PkgPath() == "" || g.open[t] {
		return s
	}
	src, err := sourceOf(t.PkgPath())
	if err != nil {
		g.fail(err)
		return s
	}
	values := src.values[t.Name()]
	if t.Kind() == reflect.Int {
		values = nil
		for i := range src.counted[t.Name()] {
			v := reflect.New(t).Elem()
			v.SetInt(int64(i))
			values = append(values, fmt.Sprint(v.Interface()))
		}
	}
	if len(values) > 0 {
		s["enum"] = values
	}
	return s
}

func (g *generator) object(t reflect.Type) schema {
	properties, required := schema{}, []string{}
	g.fields(t, properties, &required, make(map[string]bool))
	return schema{"type": "object", "additionalProperties": false, "required": required, "properties": properties}
}

// fields adds the keys of a struct and of embedded structs. had are the keys of the outer structs,
// which take precedence.
func (g *generator) fields(t reflect.Type, properties schema, required *[]string, had map[string]bool) {
	src, err := sourceOf(t.PkgPath())
	if err != nil {
		g.fail(err)
		return
	}
	var inner []reflect.Type
	for i := range t.NumField() {
		f := t.Field(i)
		name, rest, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous && name == "":
			inner = append(inner, f.Type)
			continue
		case name == "-" || !f.IsExported() || had[name]:
			continue
		case name == "":
			g.fail(fmt.Errorf("%s.%s has no key", t, f.Name))
		}
		had[name] = true
		s := g.of(f.Type)
		if text := src.comments[t.Name()+"."+f.Name]; text != "" {
			s["description"] = text
		}
		properties[name] = s
		if !strings.Contains(rest, "omit") {
			*required = append(*required, name)
		}
	}
	for _, t := range inner {
		g.fields(t, properties, required, had)
	}
}
