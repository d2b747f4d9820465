package plan_test

import (
	"reflect"
	"testing"

	"github.com/macfleet/macfleet/plan"
)

// TestSameChange sets each field of a change: hosts whose changes differ in it must not share one.
func TestSameChange(t *testing.T) {
	t.Parallel()
	for _, some := range []func() plan.Change{
		func() plan.Change { return plan.Change{} },
		func() plan.Change { return plan.Change{Guard: &plan.Guard{Restore: new(plan.Command)}} },
	} {
		if !plan.SameChange(some(), some()) {
			t.Errorf("%+v differs from its copy", some())
		}
		c := some()
		eachField(reflect.ValueOf(&c).Elem(), "", func(name string) {
			if plan.SameChange(c, some()) || plan.SameChange(some(), c) {
				t.Errorf("changes that differ in %s are the same", name)
			}
		})
	}
}

// eachField sets one field after another, and calls try while it is set.
func eachField(v reflect.Value, name string, try func(name string)) {
	old := reflect.New(v.Type()).Elem()
	old.Set(v)
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Field(i).CanSet() {
				eachField(v.Field(i), name+"."+v.Type().Field(i).Name, try)
			}
		}
		return
	case reflect.Pointer:
		if !v.IsNil() {
			eachField(v.Elem(), name, try)
			return
		}
		v.Set(reflect.New(v.Type().Elem()))
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int:
		v.SetInt(1)
	default:
		v.SetString("x")
	}
	try(name)
	v.Set(old)
}
