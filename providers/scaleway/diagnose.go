package scaleway

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	applesilicon "github.com/scaleway/scaleway-sdk-go/api/applesilicon/v1alpha1"
	"github.com/scaleway/scaleway-sdk-go/scw"

	"github.com/macfleet/macfleet/fleet/inventory"
)

// A diagnostic is read this many times, with this pause in between: one minute in all.
const (
	diagnoseTries = 30
	diagnoseEvery = 2 * time.Second
)

// Diagnose starts the provider's connectivity diagnostic of a server and waits until it is finished, at most one
// minute. It changes nothing on the server.
func (c *Client) Diagnose(ctx context.Context, zone, id string) (inventory.Diagnosis, error) {
	started, err := ask(ctx, c, oneServer, func(o scw.RequestOption) (*applesilicon.StartConnectivityDiagnosticResponse, error) {
		return c.api.StartConnectivityDiagnostic(&applesilicon.StartConnectivityDiagnosticRequest{Zone: scw.Zone(zone), ServerID: id}, o)
	})
	if err != nil {
		return inventory.Diagnosis{}, fmt.Errorf("start the connectivity diagnostic of server %s: %w", id, err)
	}
	for range diagnoseTries {
		found, err := ask(ctx, c, oneServer, func(o scw.RequestOption) (*applesilicon.ConnectivityDiagnostic, error) {
			return c.api.GetConnectivityDiagnostic(&applesilicon.GetConnectivityDiagnosticRequest{Zone: scw.Zone(zone), DiagnosticID: started.DiagnosticID}, o)
		})
		switch {
		case err != nil:
			return inventory.Diagnosis{}, fmt.Errorf("read the connectivity diagnostic of server %s: %w", id, err)
		case found.Status == applesilicon.ConnectivityDiagnosticDiagnosticStatusCompleted:
			return toDiagnosis(found), nil
		case found.Status == applesilicon.ConnectivityDiagnosticDiagnosticStatusError:
			return inventory.Diagnosis{}, fmt.Errorf("the connectivity diagnostic of server %s failed: %s", id, cmp.Or(found.ErrorMessage, "Scaleway does not say why"))
		}
		if err := c.pauses.Sleep(ctx, c.askEvery); err != nil {
			return inventory.Diagnosis{}, err
		}
	}
	return inventory.Diagnosis{}, fmt.Errorf("the connectivity diagnostic of server %s did not finish within %s", id, diagnoseTries*c.askEvery)
}

// toDiagnosis drops what only the SDK needs, and says what the parts mean.
func toDiagnosis(d *applesilicon.ConnectivityDiagnostic) inventory.Diagnosis {
	out := inventory.Diagnosis{Healthy: d.IsHealthy}
	for _, a := range d.SupportedActions {
		switch a {
		case applesilicon.ConnectivityDiagnosticActionTypeRebootServer:
			out.Actions = append(out.Actions, "reboot")
		case applesilicon.ConnectivityDiagnosticActionTypeReinstallServer:
			out.Actions = append(out.Actions, "reinstall")
		}
	}
	var texts []string
	if h := d.HealthDetails; h != nil {
		out.Detailed, out.Alive, out.Agent, out.SSH, out.VNC = true, h.IsServerAlive, h.IsAgentAlive, h.IsSSHPortUp, h.IsVncPortUp
		if h.LastCheckinDate != nil {
			out.CheckedIn = *h.LastCheckinDate
		}
		texts = append(texts, "server "+upOrDown(h.IsServerAlive), "port 22 "+openOrClosed(h.IsSSHPortUp),
			"VNC port "+openOrClosed(h.IsVncPortUp), "agent "+upOrDown(h.IsAgentAlive))
	}
	if d.ErrorMessage != "" {
		texts = append(texts, d.ErrorMessage)
	}
	out.Text = cmp.Or(strings.Join(texts, ", "), "no details")
	return out
}

func upOrDown(up bool) string {
	if up {
		return "up"
	}
	return "down"
}

func openOrClosed(open bool) string {
	if open {
		return "open"
	}
	return "closed"
}
