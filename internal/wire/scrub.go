package wire

import (
	"reflect"
	"strings"

	"github.com/macfleet/macfleet/plan"
)

// Scrub removes secrets from a text: secret.Scrubber.Scrub. It changes nothing else.
// A nil Scrub removes nothing.
type Scrub func(text string) string

// Clean returns a copy of a document in which every text, map keys included, is scrubbed
// and valid UTF-8, as JSON requires. Shared values are copied, not changed.
func Clean[T any](s Scrub, v T) T {
	s.clean(reflect.ValueOf(&v).Elem(), true)
	return v
}

// untouched are the structs that are not scrubbed, each with its reason.
var untouched = map[reflect.Type]string{
	reflect.TypeFor[plan.Code]():    "a code is this program's own word",
	reflect.TypeFor[plan.Refusal](): "a seal is compared byte by byte, holds no secret and is not recorded",
}

// raw is the type whose texts may hold invalid UTF-8: its JSON has a form for such bytes.
var raw = reflect.TypeFor[plan.Answer]()

// holder is an inventory.Seen of any type.
type holder interface {
	Inside() (value any, why *string)
}

// clean cleans a value in place. Shared parts are replaced by copies first. utf8 says
// whether its own texts become valid UTF-8.
func (s Scrub) clean(v reflect.Value, utf8 bool) {
	switch t := v.Type(); v.Kind() {
	case reflect.String:
		if after := s.text(v.String(), utf8); after != v.String() {
			v.SetString(after)
		}
	case reflect.Struct:
		if untouched[t] != "" {
			return
		}
		if h, ok := v.Addr().Interface().(holder); ok {
			value, why := h.Inside()
			if *why = s.text(*why, true); value != nil {
				s.clean(reflect.ValueOf(value).Elem(), true)
			}
			return
		}
		for i := range v.NumField() {
			if f := v.Field(i); f.CanSet() { // only exported fields: those of time.Time are not
				s.clean(f, t != raw)
			}
		}
	case reflect.Pointer:
		if !v.IsNil() {
			own := reflect.New(t.Elem())
			own.Elem().Set(v.Elem())
			s.clean(own.Elem(), true)
			v.Set(own)
		}
	case reflect.Slice:
		if !v.IsNil() {
			own := reflect.MakeSlice(t, v.Len(), v.Len())
			reflect.Copy(own, v)
			for i := range own.Len() {
				s.clean(own.Index(i), true)
			}
			v.Set(own)
		}
	case reflect.Map:
		if !v.IsNil() {
			own := reflect.MakeMapWithSize(t, v.Len())
			key, value := reflect.New(t.Key()).Elem(), reflect.New(t.Elem()).Elem()
			for all := v.MapRange(); all.Next(); {
				key.SetIterKey(all)
				value.SetIterValue(all)
				s.clean(key, true)
				s.clean(value, true)
				own.SetMapIndex(key, value)
			}
			v.Set(own)
		}
	}
}

func (s Scrub) text(text string, utf8 bool) string {
	if utf8 {
		text = strings.ToValidUTF8(text, "\uFFFD")
	}
	if s != nil {
		text = s(text)
	}
	if utf8 {
		text = strings.ToValidUTF8(text, "\uFFFD")
	}
	return text
}
