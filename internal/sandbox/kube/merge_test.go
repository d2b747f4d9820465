package kube

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestMerge checks the examples that RFC 7396 gives for objects.
func TestMerge(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ target, patch, want string }{
		{`{"a":"b"}`, `{"a":"c"}`, `{"a":"c"}`},
		{`{"a":"b"}`, `{"b":"c"}`, `{"a":"b","b":"c"}`},
		{`{"a":"b"}`, `{"a":null}`, `{}`},
		{`{"a":"b","b":"c"}`, `{"a":null}`, `{"b":"c"}`},
		{`{"a":["b"]}`, `{"a":"c"}`, `{"a":"c"}`},
		{`{"a":"c"}`, `{"a":["b"]}`, `{"a":["b"]}`},
		{`{"a":{"b":"c"}}`, `{"a":{"b":"d","c":null}}`, `{"a":{"b":"d"}}`},
		{`{"a":[{"b":"c"}]}`, `{"a":[1]}`, `{"a":[1]}`},
		{`["a","b"]`, `["c","d"]`, `["c","d"]`},
		{`{"a":"b"}`, `["c"]`, `["c"]`},
		{`{"e":null}`, `{"a":1}`, `{"e":null,"a":1}`},
		{`[1,2]`, `{"a":"b","c":null}`, `{"a":"b"}`},
		{`{}`, `{"a":{"bb":{"ccc":null}}}`, `{"a":{"bb":{}}}`},
	} {
		var target, patch, want any
		for into, text := range map[*any]string{&target: test.target, &patch: test.patch, &want: test.want} {
			must(t, json.Unmarshal([]byte(text), into))
		}
		if diff := cmp.Diff(want, merge(target, patch)); diff != "" {
			t.Errorf("%s with %s:\n%s", test.target, test.patch, diff)
		}
	}
}
