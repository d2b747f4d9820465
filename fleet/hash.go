package fleet

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash"
	"reflect"
	"slices"
)

// Hash returns a digest of all that the configuration says after its evaluation:
// what stands in variables counts, where and in which order of blocks' lines it
// was written does not, and nor do ignore blocks: they are about alarms, and what is
// done is the same with them. The same configuration gives the same text, "sha256:" and
// 64 hex digits; any value that is another gives another. A reference to a secret
// counts as it is written; no secret is in it.
func (c *Config) Hash() string {
	h := sha256.New()
	digestInto(h, reflect.ValueOf(*c))
	return "sha256:" + hex.EncodeToString(h.Sum(nil))
}

// digestInto writes a value so that no two values are written alike: each text
// and list has its length in front, each field its name.
func digestInto(h hash.Hash, v reflect.Value) {
	size := func(n int) { _ = binary.Write(h, binary.BigEndian, int64(n)) } // a hash takes everything
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
		for i := range v.NumField() {
			if f := v.Type().Field(i); f.Type != reflect.TypeFor[Sources]() && f.Type != reflect.TypeFor[[]Ignore]() {
				text(f.Name)
				digestInto(h, v.Field(i))
			}
		}
	default:
		// A test walks every type of a Config.
		panic(fmt.Sprintf("a configuration holds a %s, which has no digest", v.Type()))
	}
}
