package wire

import (
	"reflect"
	"strings"
	"sync"

	"github.com/macfleet/macfleet/plan"
)

// Scrub takes secrets out of a text: secret.Scrubber.Scrub. It changes nothing
// else. A nil Scrub takes nothing out.
type Scrub func(text string) string

// Clean returns a copy of a document in which every text, map keys among them, is
// scrubbed and valid UTF-8, as JSON wants it. What the document points to stays as
// it is for others.
func Clean[T any](s Scrub, v T) T {
	s.clean(reflect.ValueOf(&v).Elem(), text)
	return v
}

// untouched are the types whose texts stay, each with its reason.
var untouched = map[reflect.Type]string{
	reflect.TypeFor[plan.Code]():    "a code is this program's own word",
	reflect.TypeFor[plan.Refusal](): "a seal is compared byte by byte, holds no secret and is not recorded",
}

// holder is an inventory.Seen of any type.
type holder interface {
	Inside() (value any, why *string)
}

// form is how the texts of a type are reached.
type form int

const (
	noText form = iota
	plainText
	rawText // the texts keep bytes that are no UTF-8, as their JSON has a form for them
	held    // a holder
)

// forms holds the form of each type, once it was asked for.
var forms sync.Map

func formOf(t reflect.Type) form {
	f, known := forms.Load(t)
	if !known {
		f = newForm(t)
		forms.Store(t, f)
	}
	return f.(form)
}

func newForm(t reflect.Type) form {
	text := false
	switch {
	case untouched[t] != "":
		return noText
	case t == reflect.TypeFor[plan.Answer]():
		return rawText
	case reflect.PointerTo(t).Implements(reflect.TypeFor[holder]()):
		return held
	}
	switch t.Kind() {
	case reflect.String:
		text = true
	case reflect.Map:
		text = formOf(t.Key()) != noText || formOf(t.Elem()) != noText
	case reflect.Pointer, reflect.Slice:
		text = formOf(t.Elem()) != noText
	case reflect.Struct:
		for f := range t.Fields() {
			text = text || f.IsExported() && formOf(f.Type) != noText
		}
	}
	if text {
		return plainText
	}
	return noText
}

// text returns what a text becomes that is valid UTF-8.
func text(s Scrub, before string) string {
	return strings.ToValidUTF8(raw(s, strings.ToValidUTF8(before, "\uFFFD")), "\uFFFD")
}

// raw returns what a text becomes that keeps its bytes.
func raw(s Scrub, before string) string {
	if s == nil {
		return before
	}
	return s(before)
}

// clean cleans a value in place, each text by leaf. Whatever the value shares with others
// is replaced by a copy first.
func (s Scrub) clean(v reflect.Value, leaf func(Scrub, string) string) {
	t := v.Type()
	switch formOf(t) {
	case noText:
		return
	case rawText:
		leaf = raw
	case held:
		value, why := v.Addr().Interface().(holder).Inside()
		if value != nil {
			s.clean(reflect.ValueOf(value).Elem(), text)
		}
		*why = text(s, *why)
		return
	}
	switch t.Kind() {
	case reflect.String:
		if after := leaf(s, v.String()); after != v.String() {
			v.SetString(after)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if field := v.Field(i); field.CanSet() { // the inside of a time.Time cannot be
				s.clean(field, leaf)
			}
		}
	case reflect.Pointer:
		if !v.IsNil() {
			own := reflect.New(t.Elem())
			own.Elem().Set(v.Elem())
			s.clean(own.Elem(), text)
			v.Set(own)
		}
	case reflect.Slice:
		if !v.IsNil() {
			own := reflect.MakeSlice(t, v.Len(), v.Len())
			reflect.Copy(own, v)
			for i := range own.Len() {
				s.clean(own.Index(i), text)
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
				s.clean(key, text)
				s.clean(value, text)
				own.SetMapIndex(key, value)
			}
			v.Set(own)
		}
	}
}
