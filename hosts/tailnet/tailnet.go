// Package tailnet asks the Tailscale of this machine which devices its tailnet has.
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
	Host    string // what it calls itself; several devices may say the same
	Address netip.Addr
}

// Devices are all machines of the tailnet.
type Devices []Device

// Address returns the address of the device with this name. What a device calls itself does
// not count: a stale device keeps the name, and the host that joined again is called "NAME-1".
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

// programs are where the command is: on the PATH, or inside the app of macOS.
var programs = []string{"tailscale", "/Applications/Tailscale.app/Contents/MacOS/Tailscale"}

// limit bounds what the command may print; ten thousand devices take a third of it.
const limit = 32 << 20

// Ask asks the local tailscaled, with one command. An error says why its tailnet cannot be used.
func Ask(ctx context.Context) (Devices, error) {
	var program string
	for _, name := range programs {
		if found, err := exec.LookPath(name); err == nil {
			program = found
			break
		}
	}
	if program == "" {
		return nil, errors.New("this machine has no Tailscale: there is no command tailscale on the PATH")
	}
	text, err := run(ctx, program, "status", "--json")
	if err != nil {
		return nil, fmt.Errorf("tailscale status: %w", err)
	}
	return parse(text)
}

// run returns what a program prints. The error has its own words.
func run(ctx context.Context, program string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env = append(os.Environ(), "TAILSCALE_BE_CLI=1") // without it the program inside the app may open its window
	cmd.WaitDelay = time.Second                          // a wrapper may leave a process that holds the pipes
	out, told := bounded{limit: limit}, bounded{limit: 64 << 10}
	cmd.Stdout, cmd.Stderr = &out, &told
	err := cmd.Run()
	switch {
	case ctx.Err() != nil:
		return nil, errors.New("no answer in time")
	case out.over || told.over:
		return nil, errors.New("it prints without end")
	case err != nil && told.text.Len() > 0:
		return nil, fmt.Errorf("%s: %w", strings.Join(strings.Fields(told.text.String()), " "), err)
	case err != nil:
		return nil, err
	}
	return out.text.Bytes(), nil
}

// bounded keeps what is written up to a limit, and fails beyond it.
type bounded struct {
	text  bytes.Buffer
	limit int
	over  bool
}

// Write keeps p, or fails where that would be too much.
func (b *bounded) Write(p []byte) (int, error) {
	if b.over = b.over || b.text.Len()+len(p) > b.limit; b.over {
		return 0, errors.New("too much output")
	}
	return b.text.Write(p)
}

// status is what the command prints, as far as it counts here.
type status struct {
	BackendState   string
	TUN            bool // the kernel sends what goes to the tailnet's addresses through tailscaled
	MagicDNSSuffix string
	Self           node
	Peer           map[string]node
}

type node struct {
	HostName     string
	DNSName      string // with a dot at its end
	TailscaleIPs []netip.Addr
}

// parse reads the devices of a tailnet that this machine is connected to. Devices that are shared
// from other tailnets, and exit nodes of a vendor, have another suffix and are left out.
func parse(text []byte) (Devices, error) {
	var s status
	if err := json.Unmarshal(text, &s); err != nil {
		return nil, fmt.Errorf("tailscale status --json cannot be read: %w", err)
	}
	switch {
	case s.BackendState != "Running":
		return nil, fmt.Errorf("this machine's Tailscale is not connected: its state is %q", s.BackendState)
	case !s.TUN: // the address would be dialled outside the tailnet
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
