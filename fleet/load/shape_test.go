package load

import (
	"reflect"
	"testing"
)

// Every kind that a tag "is" names is known, so that no text meets a check that there is not.
func TestKindsAreKnown(t *testing.T) {
	t.Parallel()
	var walk func(sh shape)
	walk = func(sh shape) {
		kinds := []string{}
		if sh.label != nil {
			kinds = append(kinds, sh.label.Tag.Get("is"))
		}
		for _, m := range sh.members {
			if m.block {
				walk(shapeOf(m.name, m.typ))
			} else if m.typ != reflect.TypeFor[map[string]string]() {
				kinds = append(kinds, m.tag.Get("is"))
			} else if kind := m.tag.Get("is"); kind != "" && kind != "label" && kind != "host_key" {
				t.Errorf("%s: no pair is of the kind %q", m.name, kind)
			}
		}
		for _, kind := range kinds {
			if !guarded(func() { wrong(kind, "") }) {
				t.Errorf("%s: no text is of the kind %q", sh.inside(), kind)
			}
		}
	}
	walk(shapeOf("", reflect.TypeFor[document]()))
}
