package sandbox

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"

	"github.com/macfleet/macfleet/internal/sandbox/agent"
	"github.com/macfleet/macfleet/internal/sandbox/cloud"
	"github.com/macfleet/macfleet/internal/sandbox/tailnet"
)

// The folders of the control servers, and where Headscale answers.
const (
	tailnetFolder   = "tailscale"
	headscaleFolder = "headscale"
	// HeadscaleURL is the address of the world's second control server.
	HeadscaleURL = "https://headscale.acme.dev"
)

// openTailnets creates both control servers.
func (w *World) openTailnets(dir func(string) string) (err error) {
	if w.tailnet, err = tailnet.New(dir(tailnetFolder), tailnet.Options{}); err != nil {
		return err
	}
	w.headscale, err = tailnet.New(dir(headscaleFolder), tailnet.Options{Headscale: true})
	return err
}

// reaches are the control servers that one Mac reaches.
type reaches struct {
	world *World
	id    string // of its server
}

// Control returns the control server at an address.
func (r reaches) Control(url string) (agent.Control, error) {
	switch strings.TrimSuffix(url, "/") {
	case "":
		return r.world.tailnet.For(r.id), nil
	case HeadscaleURL:
		return r.world.headscale.For(r.id), nil
	}
	return nil, fmt.Errorf("lookup %s: no such host", url)
}

// TailnetURL returns the address of Tailscale's API, without a slash at its end.
func (w *World) TailnetURL() string {
	if w.shared != nil {
		return w.shared.tailnet
	}
	return w.devices.url()
}

// Tailnet returns Tailscale's control server, to set how it behaves and to change devices as a person does.
func (w *World) Tailnet() *tailnet.Server { return w.tailnet }

// Headscale returns the second control server, which has no API.
func (w *World) Headscale() *tailnet.Server { return w.headscale }

// TailnetSecret resolves a reference that an attribute of the tailnet's credentials has. Where the world has no value for it,
// the attribute gets one that the world's control server accepts: any reference works.
func (w *World) TailnetSecret(attribute, ref string, headscale bool) (string, error) {
	value, err := w.Secret(ref)
	var missing *missingError
	if err == nil || !errors.As(err, &missing) {
		return value, err
	}
	switch {
	case attribute == "identity_token":
		return "eyJhbGciOiJub25lIn0.eyJzdWIiOiJyZXBvOmFjbWUvaW5mcmEifQ.c2FuZGJveA", nil
	case attribute == "auth" && headscale:
		return w.headscale.KeyByHand(true, headscaleKeyLives)
	case attribute == "auth":
		return tailnet.Secret, nil
	}
	return "", err
}

// headscaleKeyLives is how long a key made by hand lives.
const headscaleKeyLives = 24 * 3600 * 1e9

// TailnetDevice is a device that this machine's own Tailscale sees.
type TailnetDevice struct {
	Name, Host string
	Address    netip.Addr
}

// TailnetDevices are the devices of the tailnet in which this machine is.
func (w *World) TailnetDevices() ([]TailnetDevice, error) {
	all, err := w.tailnet.Devices()
	if err != nil {
		return nil, err
	}
	var out []TailnetDevice
	for _, d := range all {
		if len(d.Addresses) == 0 || !d.Approved {
			continue
		}
		address, err := netip.ParseAddr(d.Addresses[0])
		if err != nil {
			return nil, fmt.Errorf("the sandbox's device %s: %w", d.Name, err)
		}
		out = append(out, TailnetDevice{d.Name, d.HostName, address})
	}
	return out, nil
}

// onTailnet returns the server whose Mac answers at an address of the tailnet.
func (w *World) onTailnet(address netip.Addr) (cloud.Server, bool, error) {
	if !tailnetRange.Contains(address) {
		return cloud.Server{}, false, nil
	}
	all, err := w.tailnet.Devices()
	if err != nil {
		return cloud.Server{}, false, err
	}
	i := slices.IndexFunc(all, func(d tailnet.Device) bool { return slices.Contains(d.Addresses, address.String()) })
	if i < 0 || all[i].Server == "" {
		return cloud.Server{}, false, nil
	}
	servers, err := w.cloud.Servers()
	if err != nil {
		return cloud.Server{}, false, err
	}
	for _, s := range servers {
		if s.ID != all[i].Server {
			continue
		}
		machine, err := w.macs.get(s)
		if err != nil {
			return s, false, err
		}
		at, err := machine.TailnetAddress()
		return s, at == address.String(), err
	}
	return cloud.Server{}, false, nil
}

// tailnetRange has the addresses of devices.
var tailnetRange = netip.MustParsePrefix("100.64.0.0/10")

// ReachedBy reports whether an address belongs to a tailnet.
func ReachedBy(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		host = address
	}
	a, err := netip.ParseAddr(host)
	return err == nil && tailnetRange.Contains(a)
}
