package sandbox

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/macfleet/macfleet/internal/sandbox/mac"
	"github.com/macfleet/macfleet/internal/sandbox/store"
	"github.com/macfleet/macfleet/internal/sandbox/tailnet"
)

// Tailnet is the name that stands for the tailnet in incidents that affect all of it.
const Tailnet = "tailnet"

// TailnetIncidents returns the incidents of hosts that are in the tailnet.
func TailnetIncidents() []Incident { return named(tailnetTroubles()) }

// TailnetAccountIncidents returns the incidents of the tailnet itself.
func TailnetAccountIncidents() []Incident { return named(controlTroubles()) }

func named(all []trouble) []Incident {
	out := make([]Incident, len(all))
	for i, t := range all {
		out[i] = t.Incident
	}
	return out
}

// tailnetTroubles are the incidents of a host in the tailnet.
func tailnetTroubles() []trouble {
	does := func(name, summary string, cause func(context.Context, *victim) error, lasts func(mac.TailscaleState, tailnet.Device, bool) bool) trouble {
		return trouble{Incident: Incident{name, summary}, remember: rememberTailscale, cause: cause, lasts: ofTailscale(lasts), cure: restoreTailscale}
	}
	state := func(backend string) func(mac.TailscaleState, tailnet.Device, bool) bool {
		return func(s mac.TailscaleState, _ tailnet.Device, _ bool) bool { return s.Backend == backend }
	}
	return []trouble{
		does("tailscale-logged-out", "someone ran tailscale logout on the host", byScript("/usr/local/bin/tailscale logout"), state("NeedsLogin")),
		does("tailscale-down", "someone ran tailscale down on the host", byScript("/usr/local/bin/tailscale down"), state("Stopped")),
		does("key-expired", "someone expired the node key of the host's device", editDevice(func(d tailnet.Device) *tailnet.Device {
			d.Expires, d.NeverKey = time.Now().Add(-time.Minute).UTC(), false
			return &d
		}), func(_ mac.TailscaleState, d tailnet.Device, is bool) bool { return is && !d.NeverKey }),
		does("device-deleted", "someone deleted the host's device: its tailscaled still says that it runs", editDevice(func(tailnet.Device) *tailnet.Device { return nil }),
			func(_ mac.TailscaleState, _ tailnet.Device, is bool) bool { return !is }),
		does("join-retrying", "a join failed, and tailscaled tries again for ever with the key in its memory", retryJoin, func(s mac.TailscaleState, _ tailnet.Device, _ bool) bool { return s.Retries }),
		does("machine-not-approved", "someone took the approval of the host's device away", editDevice(func(d tailnet.Device) *tailnet.Device { d.Approved = false; return &d }),
			func(_ mac.TailscaleState, d tailnet.Device, is bool) bool { return is && !d.Approved }),
		does("missing-state-folder", "someone deleted the folder of tailscaled's state, and tailscaled was restarted", byScript("rm -rf /Library/Tailscale; launchctl kickstart -k system/com.tailscale.tailscaled || :"),
			func(s mac.TailscaleState, _ tailnet.Device, _ bool) bool { return s.Backend == "" }),
		does("hostname-taken", "a stale device has the host's name, so the host's device has a number behind it", takeName,
			func(_ mac.TailscaleState, d tailnet.Device, is bool) bool {
				return is && strings.HasSuffix(d.Name, "-1")
			}),
		does("node-key-shared", "another machine runs a copy of the host's tailscaled state", editDevice(func(d tailnet.Device) *tailnet.Device { d.Second = "another machine"; return &d }),
			func(_ mac.TailscaleState, d tailnet.Device, is bool) bool { return is && d.Second != "" }),
		does("tags-edited", "someone changed the tags of the host's device", editDevice(func(d tailnet.Device) *tailnet.Device { d.Tags = []string{"tag:edited"}; return &d }),
			func(_ mac.TailscaleState, d tailnet.Device, is bool) bool {
				return is && slices.Contains(d.Tags, "tag:edited")
			}),
		does("metrics-on-public", "someone started node_exporter by hand, on every address of the host", onMac(func(m *mac.Machine) error { return m.ListenOutside(":9100") }),
			func(s mac.TailscaleState, _ tailnet.Device, _ bool) bool { return s.Exporter == ":9100" }),
		does("exporter-down", "someone stopped node_exporter for good", byScript("launchctl bootout system/dev.macfleet.node-exporter"),
			func(s mac.TailscaleState, _ tailnet.Device, _ bool) bool { return s.Exporter == "" }),
		does("node-ip-not-tailnet", "the kubelet reports the host's public address for its Node", onMac(func(m *mac.Machine) error { return m.ReportOutside("") }),
			func(s mac.TailscaleState, _ tailnet.Device, _ bool) bool { return s.KubeletIP != s.Address }),
		{
			Incident: Incident{"resolver-leftover", "a tailscaled that was killed left a file in /etc/resolver"}, remember: rememberTailscale,
			cause: byScript("mkdir -p /etc/resolver; printf '# Added by tailscaled\\nsearch tail1234.ts.net\\n' >" + leftResolver),
			lasts: func(_ context.Context, v *victim) (bool, error) {
				machine, err := v.machine()
				if err != nil {
					return false, err
				}
				_, err = machine.ReadFile(leftResolver)
				return err == nil, nil
			},
			cure: byScript("rm -f " + leftResolver),
		},
	}
}

// leftResolver is a file of tailscaled's.
const leftResolver = "/etc/resolver/search.tailscale"

// controlTroubles are the incidents of the tailnet itself.
func controlTroubles() []trouble {
	does := func(name, summary string, cause, cure func(*tailnet.Settings), lasts func(tailnet.Settings) bool) trouble {
		set := func(change func(*tailnet.Settings)) func(context.Context, *victim) error {
			return func(_ context.Context, v *victim) error { return v.world.tailnet.Set(change) }
		}
		return trouble{Incident: Incident{name, summary}, place: Tailnet, remember: nothing, cause: set(cause), cure: set(cure),
			lasts: func(_ context.Context, v *victim) (bool, error) {
				own, err := v.world.tailnet.Settings()
				return lasts(own), err
			}}
	}
	return []trouble{
		does("tags-not-permitted", "the OAuth client may give only tags that the configuration does not use", func(s *tailnet.Settings) { s.ClientTags = []string{"tag:other"} },
			func(s *tailnet.Settings) { s.ClientTags = nil }, func(s tailnet.Settings) bool { return len(s.ClientTags) > 0 }),
		{Incident: Incident{"device-cap-reached", "other machines with tags use up the devices of the tailnet's plan"}, place: Tailnet, remember: nothing,
			cause: func(_ context.Context, v *victim) error { return v.world.tailnet.Fill(otherDevices) },
			lasts: func(_ context.Context, v *victim) (bool, error) {
				all, err := v.world.tailnet.Devices()
				return slices.ContainsFunc(all, func(d tailnet.Device) bool { return strings.HasPrefix(d.Name, tailnet.Filler) }), err
			},
			cure: func(_ context.Context, v *victim) error { return v.world.tailnet.Fill(0) }},
		{Incident: Incident{"other-tailnet", "the OAuth client in the configuration is one of another tailnet"}, place: Tailnet, remember: nothing,
			cause: func(_ context.Context, v *victim) error { return v.world.tailnet.Another("tail9999.ts.net") },
			lasts: func(_ context.Context, v *victim) (bool, error) {
				own, err := v.world.tailnet.Settings()
				return own.ClientOf != "", err
			},
			cure: func(_ context.Context, v *victim) error { return v.world.tailnet.Another("") }},
		does("magicdns-off", "someone turned MagicDNS off in the tailnet", func(s *tailnet.Settings) { s.NoMagicDNS = true },
			func(s *tailnet.Settings) { s.NoMagicDNS = false }, func(s tailnet.Settings) bool { return s.NoMagicDNS }),
		does("tailnet-down", "the tailnet's control server answers with 502 to the API, and daemons do not reach it", func(s *tailnet.Settings) { s.Down = 502 },
			func(s *tailnet.Settings) { s.Down = 0 }, func(s tailnet.Settings) bool { return s.Down != 0 }),
	}
}

// otherDevices are as many as the plans allow that Tailscale publishes.
const otherDevices = 50

// byScript runs a script on the Mac as root.
func byScript(script string) func(context.Context, *victim) error {
	return func(ctx context.Context, v *victim) error {
		_, err := v.run(ctx, script)
		return err
	}
}

// rememberTailscale records the daemon and its device.
func rememberTailscale(_ context.Context, v *victim) error {
	machine, err := v.machine()
	if err != nil {
		return err
	}
	s, err := machine.Tailscale()
	if err != nil {
		return fmt.Errorf("%w; fix: apply a configuration with a tailnet to it first", err)
	}
	d, is, err := v.device(s.ID)
	if err != nil {
		return err
	}
	if !is {
		return fmt.Errorf("the tailnet has no device of %s; fix: apply a configuration with a tailnet to it first", v.server.Name)
	}
	v.record.Settings = map[string]string{"id": s.ID, "exporter": s.Exporter, "kubelet": s.KubeletIP}
	if v.record.File, err = store.Encode(d); err != nil {
		return err
	}
	v.record.Planted, err = machine.KeepTailscale()
	return err
}

// device returns the device with an id.
func (v *victim) device(id string) (tailnet.Device, bool, error) {
	all, err := v.world.tailnet.Devices()
	i := slices.IndexFunc(all, func(d tailnet.Device) bool { return d.ID == id })
	if i < 0 {
		return tailnet.Device{}, false, err
	}
	return all[i], true, err
}

// ofTailscale reports whether an incident lasts, by the daemon and by the device that it had when it started.
func ofTailscale(lasts func(mac.TailscaleState, tailnet.Device, bool) bool) func(context.Context, *victim) (bool, error) {
	return func(_ context.Context, v *victim) (bool, error) {
		machine, err := v.machine()
		if err != nil {
			return false, err
		}
		s, _ := machine.Tailscale() // zero if it does not run
		d, is, err := v.device(v.record.Settings["id"])
		if s.ID != "" && s.ID != v.record.Settings["id"] {
			return false, err // it has joined again
		}
		return lasts(s, d, is), err
	}
}

// editDevice changes the host's device; nil deletes it. The daemon learns what its server pushes.
func editDevice(change func(tailnet.Device) *tailnet.Device) func(context.Context, *victim) error {
	return func(ctx context.Context, v *victim) error {
		d, is, err := v.device(v.record.Settings["id"])
		if err != nil || !is {
			return err
		}
		if err := v.world.tailnet.Edit(d.Name, change); err != nil {
			return err
		}
		machine, err := v.machine()
		if err != nil {
			return err
		}
		return machine.Settle(ctx)
	}
}

// retryJoin leaves a daemon without a device and with a spent key.
func retryJoin(ctx context.Context, v *victim) error {
	key, err := v.world.tailnet.KeyByHand(false, -time.Minute)
	if err != nil {
		return err
	}
	machine, err := v.machine()
	if err != nil {
		return err
	}
	if err := editDevice(func(tailnet.Device) *tailnet.Device { return nil })(ctx, v); err != nil {
		return err
	}
	return machine.RetryJoin(key)
}

// takeName puts a stale device with the host's name next to the host's.
func takeName(ctx context.Context, v *victim) error {
	d, is, err := v.device(v.record.Settings["id"])
	if err != nil || !is {
		return err
	}
	name := d.Name
	if err := editDevice(func(d tailnet.Device) *tailnet.Device { d.Name = name + "-1"; return &d })(ctx, v); err != nil {
		return err
	}
	if err := v.world.tailnet.Add(name, d.Tags...); err != nil {
		return err
	}
	return v.world.tailnet.Edit(name, func(d tailnet.Device) *tailnet.Device { d.Connected = false; return &d })
}

// restoreTailscale gives the daemon and its device back what they had.
func restoreTailscale(ctx context.Context, v *victim) error {
	var d tailnet.Device
	if err := store.Decode("the incident", v.record.File, &d); err != nil {
		return err
	}
	if err := v.world.tailnet.Restore(d); err != nil {
		return err
	}
	machine, err := v.machine()
	if err != nil {
		return err
	}
	script := `mkdir -p /Library/Tailscale
for label in com.tailscale.tailscaled dev.macfleet.node-exporter; do
  launchctl print "system/$label" >/dev/null 2>&1 || launchctl bootstrap system "/Library/LaunchDaemons/$label.plist" || :
done
launchctl kickstart system/com.tailscale.tailscaled || :
`
	if _, err := v.run(ctx, script); err != nil {
		return err
	}
	if err := machine.RestoreTailscale(v.record.Planted); err != nil {
		return err
	}
	if at := v.record.Settings["exporter"]; at != "" {
		if err := machine.ListenOutside(at); err != nil {
			return err
		}
	}
	if at := v.record.Settings["kubelet"]; at != "" {
		if err := machine.ReportOutside(at); err != nil {
			return err
		}
	}
	return machine.Settle(ctx)
}
