package view

import (
	"io"
	"slices"
	"strconv"

	"github.com/macfleet/macfleet/internal/doctor"
	"github.com/macfleet/macfleet/internal/wire"
)

// Account prints the verdict on the provider's account, all of its checks, and its servers.
func (t *Text) Account(a doctor.Account) {
	t.checklist("account "+a.AccessKey, a.Healthy, a.Checks)
	if len(a.Servers) == 0 {
		return
	}
	t.blank()
	servers := [][]string{{"ZONE", "ROLE", "TYPE", "STATUS", "SERVERS"}}
	for _, s := range a.Servers {
		servers = append(servers, []string{s.Zone, s.Role, s.Type, s.Status, strconv.Itoa(s.Count)})
	}
	t.columns(0, servers)
}

// checklist prints a verdict and all checks, last those that only a change would test.
func (t *Text) checklist(name string, healthy bool, checks []doctor.Check) {
	as := doctor.Checkup{Name: name, Server: name, Healthy: healthy}
	as.Checks = slices.DeleteFunc(slices.Clone(checks), func(c doctor.Check) bool { return c.State == doctor.Untested })
	t.Checkup(as, true)
	var rows [][]string
	for _, c := range checks {
		if c.State == doctor.Untested {
			rows = append(rows, []string{markWaiting, c.Name, c.Text})
		}
	}
	t.columns(0, rows)
}

// AccountDocument is the check list of an account as one JSON object.
type AccountDocument struct {
	wire.Head
	doctor.Account
}

// WriteAccount prints the check list of an account as one JSON document.
func WriteAccount(w io.Writer, a doctor.Account) error {
	return wire.Write(w, AccountDocument{wire.NewHead(), a})
}
