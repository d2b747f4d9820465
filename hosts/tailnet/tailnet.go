// Package tailnet lists the devices of this machine's tailnet.
package tailnet

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"
)

// Device is a machine of the tailnet, this one included.
type Device struct {
	Name    string // unique in the tailnet: the first label of its MagicDNS name
	Host    string // its host name; not unique
	Address netip.Addr
}

// Devices are all devices of the tailnet.
type Devices []Device

// Address returns the address of the device with this unique name. Host names do not count: a
// stale device may still have the name, and the rejoined host is then named "NAME-1".
func (all Devices) Address(name string) (netip.Addr, error) {
	var others []string
	for _, d := range all {
		if strings.EqualFold(d.Name, name) {
			return d.Address, nil
		}
		if strings.EqualFold(d.Host, name) {
			others = append(others, d.Name)
		}
	}
	err := fmt.Errorf("no device of the tailnet is named %s", name)
	if len(others) > 0 {
		err = fmt.Errorf("%w; a device with that host name is named %s", err, strings.Join(others, ", "))
	}
	return netip.Addr{}, err
}

// programs are the command's locations: on the PATH, or inside the macOS app.
var programs = []string{"tailscale", "/Applications/Tailscale.app/Contents/MacOS/Tailscale"}

// limit is the maximum output of the command; ten thousand devices take a third of it.
const limit = 32 << 20

// Ask runs tailscale status once. The error says why the tailnet cannot be used.
func Ask(ctx context.Context) (Devices, error) {
	var program string
	for _, name := range programs {
		if found, err := exec.LookPath(name); err == nil {
			program = found
			break
		}
	}
	if program == "" {
		return nil, errors.New("this machine has no Tailscale: no tailscale command on the PATH")
	}
	text, err := run(ctx, program, "status", "--json")
	if err != nil {
		return nil, fmt.Errorf("tailscale status: %w", err)
	}
	return parse(text)
}

// run returns a program's output. The error has its message.
func run(ctx context.Context, program string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env = append(os.Environ(), "TAILSCALE_BE_CLI=1") // otherwise the program inside the app may open a window
	cmd.WaitDelay = time.Second                          // a wrapper may leave a process that keeps the pipes open
	out, told := bounded{limit: limit}, bounded{limit: 64 << 10}
	cmd.Stdout, cmd.Stderr = &out, &told
	err := cmd.Run()
	switch {
	case ctx.Err() != nil:
		return nil, errors.New("no answer in time")
	case out.over || told.over:
		return nil, errors.New("too much output")
	case err != nil && told.text.Len() > 0:
		return nil, fmt.Errorf("%s: %w", strings.Join(strings.Fields(told.text.String()), " "), err)
	case err != nil:
		return nil, err
	}
	return out.text.Bytes(), nil
}

// bounded is a buffer that fails beyond a limit.
type bounded struct {
	text  bytes.Buffer
	limit int
	over  bool
}

// Write appends p, or fails at the limit.
func (b *bounded) Write(p []byte) (int, error) {
	if b.over = b.over || b.text.Len()+len(p) > b.limit; b.over {
		return 0, errors.New("too much output")
	}
	return b.text.Write(p)
}

// status is the relevant part of the command's output.
type status struct {
	BackendState   string
	TUN            bool // tailscaled has a network interface
	MagicDNSSuffix string
	Self           node
	Peer           map[string]node
}

type node struct {
	HostName     string
	DNSName      string // with a trailing dot
	TailscaleIPs []netip.Addr
}

// parse parses the devices of the connected tailnet. Devices shared from other tailnets and
// vendors' exit nodes have another suffix and are left out.
func parse(text []byte) (Devices, error) {
	var s status
	if err := json.Unmarshal(text, &s); err != nil {
		return nil, fmt.Errorf("malformed output of tailscale status --json: %w", err)
	}
	switch {
	case s.BackendState != "Running":
		return nil, fmt.Errorf("this machine's Tailscale is not connected (state %q)", s.BackendState)
	case !s.TUN: // connections would leave the tailnet
		return nil, errors.New("this machine's Tailscale has no network interface (userspace networking)")
	}
	var all Devices
	for _, n := range append(slices.Collect(maps.Values(s.Peer)), s.Self) {
		name, suffix, _ := strings.Cut(strings.TrimSuffix(n.DNSName, "."), ".")
		if name != "" && suffix != "" && strings.EqualFold(suffix, s.MagicDNSSuffix) && len(n.TailscaleIPs) > 0 {
			all = append(all, Device{Name: name, Host: n.HostName, Address: n.TailscaleIPs[0]})
		}
	}
	slices.SortFunc(all, func(a, b Device) int { return strings.Compare(a.Name, b.Name) })
	return all, nil
}
