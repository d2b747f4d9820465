package runlog

import "reflect"

// scrubbed takes secrets out of every text of a line, before it becomes JSON: a
// text that was escaped is no longer the one that is known.
func scrubbed(e Entry, scrub func(string) string) Entry {
	v := reflect.ValueOf(&e).Elem()
	scrubValue(v, scrub)
	return e
}

func scrubValue(v reflect.Value, scrub func(string) string) {
	switch v.Kind() {
	case reflect.String:
		if v.CanSet() {
			v.SetString(scrub(v.String()))
		}
	case reflect.Pointer:
		if v.IsNil() {
			return
		}
		// What the pointer shows is the caller's: a copy is changed.
		own := reflect.New(v.Type().Elem())
		own.Elem().Set(v.Elem())
		scrubValue(own.Elem(), scrub)
		v.Set(own)
	case reflect.Slice:
		if v.IsNil() {
			return
		}
		own := reflect.MakeSlice(v.Type(), v.Len(), v.Len())
		reflect.Copy(own, v)
		for i := range own.Len() {
			scrubValue(own.Index(i), scrub)
		}
		v.Set(own)
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Field(i); f.CanSet() { // the inside of a time.Time cannot
				scrubValue(f, scrub)
			}
		}
	}
}
