package view

import (
	"fmt"
	"strings"

	"github.com/macfleet/macfleet/fleet/inventory"
)

// Prepared is an object that a cluster needs before its first plan, and what for.
type Prepared struct {
	inventory.Object
	For string
}

// Preparation shows what a cluster lacks, what for, and how much is right. Objects
// for the same thing are one line.
func (t *Text) Preparation(all []Prepared) {
	kept := 0
	var lines []Prepared
	names := make(map[Prepared][]string) // by state and purpose
	for _, p := range all {
		if p.State == inventory.ObjectKept {
			kept++
			continue
		}
		key := Prepared{Object: inventory.Object{State: p.State}, For: p.For}
		if names[key] == nil {
			lines = append(lines, key)
		}
		names[key] = append(names[key], objectName(p.Object))
	}
	if len(lines) == 0 {
		t.line(0, "", fmt.Sprintf("The cluster is prepared: %s as wanted.", count(kept, "object")))
		return
	}
	t.line(0, "", "The cluster needs, before macfleet can work with it:")
	for _, l := range lines {
		sign := "+"
		switch l.State {
		case inventory.ObjectDiffers:
			sign = "~"
		case inventory.ObjectSurplus:
			sign = "-"
		}
		t.line(2, sign, strings.Join(names[l], ", ")+": "+l.For)
	}
	if kept > 0 {
		t.line(0, "", fmt.Sprintf("%s as wanted.", count(kept, "object")))
	}
}

// objectName is an object's kind and place, and what is not as wanted.
func objectName(o inventory.Object) string {
	name := o.Kind + " "
	if o.Namespace != "" {
		name += o.Namespace + "/"
	}
	name += o.Name
	if o.Why != "" {
		name += " (" + o.Why + ")"
	}
	return name
}
