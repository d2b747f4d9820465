package wire

import (
	"reflect"
	"strings"
	"sync"

	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/plan"
)

// Scrub takes secrets out of a text: secret.Scrubber.Scrub. It changes nothing
// else. A nil Scrub takes nothing out.
type Scrub func(text string) string

// Snapshot, Host, Facts and Nodes return what was observed with every text clean.
// They run before anything is computed, so that a plan from a file is the plan that
// was seen.
func (s Scrub) Snapshot(v plan.Snapshot) plan.Snapshot { return Clean(s, v) }

// Host returns a host's observation with every text clean.
func (s Scrub) Host(v plan.HostSeen) plan.HostSeen { return Clean(s, v) }

// Facts returns answers with every text clean.
func (s Scrub) Facts(v plan.Facts) plan.Facts { return Clean(s, v) }

// Nodes returns Nodes with every text clean.
func (s Scrub) Nodes(v []inventory.Node) []inventory.Node { return Clean(s, v) }

// Clean returns a copy of a document in which every text, map keys among them, is
// scrubbed and valid UTF-8, as JSON wants it. What the document points to stays as
// it is for others.
func Clean[T any](s Scrub, v T) T {
	if w := walkOf(reflect.TypeFor[T]()); w != nil {
		w(s, reflect.ValueOf(&v).Elem())
	}
	return v
}

// untouched are the types whose texts stay, each with its reason.
var untouched = map[reflect.Type]string{
	reflect.TypeFor[plan.Code]():    "a code is this program's own word",
	reflect.TypeFor[plan.Refusal](): "a seal is compared byte by byte, holds no secret and is not recorded",
}

// raw are the types whose texts are scrubbed and keep bytes that are no UTF-8: their
// JSON has a form for them.
var raw = map[reflect.Type]bool{reflect.TypeFor[plan.Answer](): true}

// walk cleans a value in place. Whatever the value shares with others is replaced by
// a copy first.
type walk func(s Scrub, v reflect.Value)

// walks holds the walk of each type, once it was made. A type without a text has nil.
var walks sync.Map

func walkOf(t reflect.Type) walk {
	if w, ok := walks.Load(t); ok {
		return w.(walk)
	}
	w := newWalk(t, text)
	walks.Store(t, w)
	return w
}

// text cleans one text.
func text(s Scrub, v reflect.Value) {
	before := v.String()
	after := strings.ToValidUTF8(before, "\uFFFD")
	if s != nil {
		after = strings.ToValidUTF8(s(after), "\uFFFD")
	}
	if after != before {
		v.SetString(after)
	}
}

// rawText scrubs one text and keeps its bytes.
func rawText(s Scrub, v reflect.Value) {
	if s == nil {
		return
	}
	if after := s(v.String()); after != v.String() {
		v.SetString(after)
	}
}

// holder is an inventory.Seen of any type.
type holder interface {
	Inside() (value any, why *string)
}

// newWalk returns the walk of a type, whose texts are cleaned by a leaf.
func newWalk(t reflect.Type, leaf walk) walk {
	switch {
	case untouched[t] != "":
		return nil
	case raw[t]:
		leaf = rawText
	case reflect.PointerTo(t).Implements(reflect.TypeFor[holder]()):
		return seen
	}
	switch t.Kind() {
	case reflect.String:
		return leaf
	case reflect.Pointer:
		return pointer(t)
	case reflect.Slice:
		return list(t)
	case reflect.Map:
		return dictionary(t)
	case reflect.Struct:
		return fields(t, leaf)
	}
	return nil
}

func seen(s Scrub, v reflect.Value) {
	value, why := v.Addr().Interface().(holder).Inside()
	if value != nil {
		v := reflect.ValueOf(value).Elem()
		if w := walkOf(v.Type()); w != nil {
			w(s, v)
		}
	}
	if *why != "" {
		text(s, reflect.ValueOf(why).Elem())
	}
}

func pointer(t reflect.Type) walk {
	inner := walkOf(t.Elem())
	if inner == nil {
		return nil
	}
	return func(s Scrub, v reflect.Value) {
		if v.IsNil() {
			return
		}
		own := reflect.New(t.Elem())
		own.Elem().Set(v.Elem())
		inner(s, own.Elem())
		v.Set(own)
	}
}

func list(t reflect.Type) walk {
	inner := walkOf(t.Elem())
	if inner == nil {
		return nil
	}
	return func(s Scrub, v reflect.Value) {
		if v.IsNil() {
			return
		}
		own := reflect.MakeSlice(t, v.Len(), v.Len())
		reflect.Copy(own, v)
		for i := range own.Len() {
			inner(s, own.Index(i))
		}
		v.Set(own)
	}
}

func dictionary(t reflect.Type) walk {
	ofKey, ofValue := walkOf(t.Key()), walkOf(t.Elem())
	if ofKey == nil && ofValue == nil {
		return nil
	}
	return func(s Scrub, v reflect.Value) {
		if v.IsNil() {
			return
		}
		own := reflect.MakeMapWithSize(t, v.Len())
		key, value := reflect.New(t.Key()).Elem(), reflect.New(t.Elem()).Elem()
		for all := v.MapRange(); all.Next(); {
			key.SetIterKey(all)
			value.SetIterValue(all)
			if ofKey != nil {
				ofKey(s, key)
			}
			if ofValue != nil {
				ofValue(s, value)
			}
			own.SetMapIndex(key, value)
		}
		v.Set(own)
	}
}

// fields walks over what of a struct is exported: the inside of a time.Time is not.
func fields(t reflect.Type, leaf walk) walk {
	type field struct {
		at   int
		walk walk
	}
	var all []field
	for i := range t.NumField() {
		f := t.Field(i)
		if !f.IsExported() {
			continue
		}
		w := walkOf(f.Type)
		if f.Type.Kind() == reflect.String {
			w = leaf
		}
		if w != nil {
			all = append(all, field{i, w})
		}
	}
	if all == nil {
		return nil
	}
	return func(s Scrub, v reflect.Value) {
		for _, f := range all {
			f.walk(s, v.Field(f.at))
		}
	}
}
