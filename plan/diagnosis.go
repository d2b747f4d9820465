package plan

import (
	"fmt"
	"slices"
	"strings"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/fleet/inventory"
)

// The codes of hosts that do not answer, where more is known than that.
var (
	CodeHostDown = NewCode("host-down", Critical, "the host does not answer, and the provider's diagnostic says that it does not run",
		"macfleet reboot NAME")
	CodePortUnreachable = NewCode("ssh-port-unreachable", Critical, "the host runs, and its SSH port does not answer",
		"allow the SSH port from this machine; if the host bans this machine's address, macfleet reboot NAME ends the ban")
)

// NoAnswer reports whether the trouble is that no SSH server answers, for whatever reason.
func (t *Trouble) NoAnswer() bool {
	return t != nil && (t.Code == CodeUnreachable || t.Code == CodeHostDown || t.Code == CodePortUnreachable)
}

// Undiagnosed returns the members that do not answer although the provider calls them ready, and of which no
// diagnostic was made. A Node that is Ready needs none: its host runs.
func (p *Plan) Undiagnosed() []inventory.Server {
	var out []inventory.Server
	for i := range p.Hosts {
		h := &p.Hosts[i]
		if h.Member && h.Unknown.NoAnswer() && h.Server.Usable() && !h.reports() && h.Seen.Diagnosis == nil && h.Seen.DiagnosisUnread == "" {
			out = append(out, h.Server)
		}
	}
	return out
}

// reports reports whether the host's own Node is Ready: its kubelet has talked to the cluster within the last
// minute.
func (h *Host) reports() bool {
	node, joined := h.Node.Get()
	return joined && node.Ready == inventory.Ready && (node.ProviderID == "" || node.ProviderID == h.Server.ProviderID())
}

// Diagnosed returns why a host could not be read, with what else is known of it: the provider's status of its server,
// its Node, and the provider's diagnostic.
func (h *Host) Diagnosed(of fleet.Vendor) *Trouble {
	t := *h.Seen.Trouble
	if !h.Server.Usable() {
		t.Text += "; " + condition(of, h.Server)
		return &t
	}
	if t.Code != CodeUnreachable {
		return &t
	}
	d := h.Seen.Diagnosis
	switch {
	case h.reports():
		t.Code = CodePortUnreachable
		t.Text += "; its Node is Ready, so the host runs"
		t.Remedy = h.openPort(of)
	case d == nil && h.Seen.DiagnosisUnread != "":
		t.Text += fmt.Sprintf("; %s's diagnostic could not be read: %s", of.Name, h.Seen.DiagnosisUnread)
	case d == nil:
	default:
		t.Text += fmt.Sprintf("; %s's diagnostic: %s", of.Name, d.Text)
		h.conclude(&t, *d, of)
	}
	return &t
}

// conclude says what a diagnostic means. One without details says only whether all is well.
func (h *Host) conclude(t *Trouble, d inventory.Diagnosis, of fleet.Vendor) {
	switch {
	case d.Healthy, d.Detailed && (d.Alive || d.SSH):
		t.Code = CodePortUnreachable
		t.Remedy = h.openPort(of)
		if d.Detailed && !d.SSH {
			t.Remedy = "enable Remote Login over VNC, or: " + h.restart(of)
		}
	case d.Detailed:
		t.Code = CodeHostDown
		t.Remedy = h.restart(of)
		if len(d.Actions) > 0 && !slices.Contains(d.Actions, "reboot") {
			t.Remedy = fmt.Sprintf("ask the support of %s (its diagnostic offers: %s)", of.Name, strings.Join(d.Actions, ", "))
		}
	}
}

// restart says how a person restarts the host's server. The command refuses while work may run on the host; it takes
// members only.
func (h *Host) restart(of fleet.Vendor) string {
	if h.Member {
		return "macfleet reboot " + h.Name
	}
	return "reboot the server in " + of.Console()
}

// openPort says how the SSH port of a running host is reached again.
func (h *Host) openPort(of fleet.Vendor) string {
	return "allow the SSH port from this machine, or add another path to via of the ssh block; if the host bans this machine's address, a reboot ends the ban: " +
		h.restart(of)
}
