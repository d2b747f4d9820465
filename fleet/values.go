package fleet

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/macfleet/macfleet/internal/secret"
)

// Level is how close to a host a value was set. A closer one wins.
type Level string

// The levels, farthest first.
const (
	BuiltIn    Level = "built in" // macfleet's default: not in the configuration
	InDefaults Level = "defaults"
	InFleet    Level = "fleet"
	InGroup    Level = "group"
	InHost     Level = "host"
)

// Source is where a value was set. File is relative to the directory of the configuration; File and Line are
// empty for BuiltIn.
type Source struct {
	Level Level  `json:"level"` // built in, defaults, fleet, group or host
	File  string `json:"file"`  // "" when built in
	Line  int    `json:"line"`  // 0 when built in
}

// String returns "file:line", or "built in".
func (s Source) String() string {
	if s.File == "" {
		return string(BuiltIn)
	}
	return s.File + ":" + strconv.Itoa(s.Line)
}

// Sources says where each value of a host comes from: by the path of Value, and under "os" and "type" for the
// fleet's and the group's. A missing path is built in.
type Sources map[string]Source

// Of returns where the value of a path comes from.
func (s Sources) Of(path string) Source {
	if at, ok := s[path]; ok {
		return at
	}
	return Source{Level: BuiltIn}
}

// Value is one effective value of a specification.
type Value struct {
	Path string `json:"path"`  // "power.sleep"; of a block itself "power"
	Text string `json:"value"` // as in the configuration; empty for a block
}

// Values lists every value of the blocks that s has, each block before its
// values, in the order of the struct.
func (s Spec) Values() []Value {
	var out []Value
	values(reflect.ValueOf(s), "", &out)
	return out
}

func values(v reflect.Value, prefix string, out *[]Value) {
	for f, field := range v.Fields() {
		name, kind, _ := strings.Cut(f.Tag.Get("hcl"), ",")
		if kind == "block" {
			if !field.IsNil() {
				*out = append(*out, Value{Path: prefix + name})
				values(field.Elem(), prefix+name+".", out)
			}
			continue
		}
		if field.Kind() == reflect.Pointer && !field.IsNil() {
			field = field.Elem()
		}
		*out = append(*out, Value{Path: prefix + name, Text: written(field)})
	}
}

// written returns a value in HCL; for an artifact also its version.
func written(v reflect.Value) string {
	switch v.Kind() {
	case reflect.Pointer:
		return "null"
	case reflect.String:
		return strconv.Quote(v.String())
	case reflect.Map:
		if v.Len() == 0 {
			return "{}"
		}
		parts := make([]string, 0, v.Len())
		for key, value := range v.Seq2() {
			parts = append(parts, fmt.Sprintf("%q = %s", key.String(), written(value)))
		}
		slices.Sort(parts)
		return "{ " + strings.Join(parts, ", ") + " }"
	case reflect.Slice:
		parts := make([]string, v.Len())
		for i := range parts {
			parts[i] = written(v.Index(i))
		}
		return "[" + strings.Join(parts, ", ") + "]"
	}
	switch x := v.Interface().(type) {
	case Artifact:
		return fmt.Sprintf("%s (%s)", x, x.Version)
	case secret.Ref:
		return fmt.Sprintf("secret(%q)", x)
	}
	return fmt.Sprint(v.Interface())
}

// WithDefaults returns s with every unset value set to its default. Blocks that s lacks stay absent; nested
// blocks of its blocks appear where their tag includes them. The result shares no changed memory with s.
func (s Spec) WithDefaults() Spec {
	fill(reflect.ValueOf(&s).Elem())
	return s
}

func fill(v reflect.Value) {
	for f, field := range v.Fields() {
		isBlock := strings.HasSuffix(f.Tag.Get("hcl"), ",block")
		text, ok := f.Tag.Lookup("default")
		switch {
		case !ok || !field.IsNil():
		case field.Kind() == reflect.Slice:
			field.Set(reflect.ValueOf(strings.Split(text, ",")))
		case isBlock:
			field.Set(reflect.New(f.Type.Elem()))
		default:
			field.Set(reflect.New(f.Type.Elem()))
			set(field.Elem(), text)
		}
		if isBlock && !field.IsNil() {
			block := reflect.New(f.Type.Elem())
			block.Elem().Set(field.Elem())
			fill(block.Elem())
			field.Set(block)
		}
	}
}

// set parses the text of a default tag. A tag that does not fit its field is a bug in this package, and a
// test checks them all.
func set(v reflect.Value, text string) {
	if v.Kind() == reflect.String {
		v.SetString(text)
	} else if err := json.Unmarshal([]byte(text), v.Addr().Interface()); err != nil {
		panic(fmt.Sprintf("the default %q does not fit a %s", text, v.Kind()))
	}
}

// Hash returns a digest of the evaluated configuration. Values of variables count. The places and order of
// lines do not, nor do ignore blocks, which only affect alerts. The same configuration gives the same text,
// "sha256:" and 64 hex digits; any other value gives another. A reference to a secret counts as written; no
// secret is included.
func (c *Config) Hash() string {
	h := sha256.New()
	digestInto(h, reflect.ValueOf(*c))
	return "sha256:" + hex.EncodeToString(h.Sum(nil))
}

// digestInto writes a value so that no two values are written the same way: each text and list is preceded by
// its length, each field by its name.
func digestInto(h hash.Hash, v reflect.Value) {
	size := func(n int) { _ = binary.Write(h, binary.BigEndian, int64(n)) } // writing to a hash cannot fail
	text := func(s string) {
		size(len(s))
		h.Write([]byte(s))
	}
	switch v.Kind() {
	case reflect.String:
		text(v.String())
	case reflect.Bool, reflect.Int, reflect.Int64:
		text(fmt.Sprint(v.Interface()))
	case reflect.Pointer:
		if v.IsNil() {
			size(0)
			return
		}
		size(1)
		digestInto(h, v.Elem())
	case reflect.Slice, reflect.Array:
		size(v.Len())
		for i := range v.Len() {
			digestInto(h, v.Index(i))
		}
	case reflect.Map:
		keys := v.MapKeys()
		slices.SortFunc(keys, func(a, b reflect.Value) int { return cmp.Compare(a.String(), b.String()) })
		size(len(keys))
		for _, k := range keys {
			text(k.String())
			digestInto(h, v.MapIndex(k))
		}
	case reflect.Struct:
		for f, field := range v.Fields() {
			if f.Type != reflect.TypeFor[Sources]() && f.Type != reflect.TypeFor[[]Ignore]() {
				text(f.Name)
				digestInto(h, field)
			}
		}
	default:
		// A test visits every type of a Config.
		panic(fmt.Sprintf("a configuration holds a %s, which has no digest", v.Type()))
	}
}
