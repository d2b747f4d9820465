package plantest

import "github.com/macfleet/macfleet/plan"

// Code returns the code of that name, declared or not, as a record of it is read.
func Code(name string) (c plan.Code) {
	if err := c.UnmarshalText([]byte(name)); err != nil {
		panic(err)
	}
	return c
}
