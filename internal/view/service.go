package view

import (
	"io"

	"github.com/macfleet/macfleet/internal/doctor"
	"github.com/macfleet/macfleet/internal/wire"
)

// Services prints the verdict on each organization or repository at GitHub, and all of its checks.
func (t *Text) Services(all []doctor.Service) {
	for i, s := range all {
		if i > 0 {
			t.blank()
		}
		t.checklist(s.Scope, s.Healthy, s.Checks)
	}
}

// ServicesDocument is the check lists of doctor github as one JSON object.
type ServicesDocument struct {
	wire.Head
	Healthy bool             `json:"healthy"` // every scope is
	Scopes  []doctor.Service `json:"scopes"`
}

// WriteServices prints the check lists as one JSON document.
func WriteServices(w io.Writer, healthy bool, all []doctor.Service) error {
	return wire.Write(w, ServicesDocument{wire.NewHead(), healthy, all})
}
