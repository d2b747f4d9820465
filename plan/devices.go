package plan

import (
	"fmt"
	"slices"
	"strings"

	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/plan/lists"
)

var (
	codeDeviceLeftOver = NewCode("device-left-over", Notice, "the tailnet lists a disconnected device whose host is gone")
	codeDeviceCap      = NewCode("device-cap-reached", NotDrift, "the tailnet has no room for another device",
		"delete unused devices; or change the tailnet's plan and raise device_budget; or disable the step in a fleet; or use your own control server (control_url)")
)

// tailnetPlace names the tailnet in the place of a host or a CI service.
const tailnetPlace = "the tailnet"

// DeviceStatus is a host's device in the tailnet, as the control server lists it.
type DeviceStatus struct {
	inventory.Device
}

// deviceKeeper returns the step that makes a host a device of the tailnet; ok is false if there is none.
func deviceKeeper(all []Step) (k DeviceKeeper, ok bool) {
	for _, s := range all {
		if k, ok = s.(DeviceKeeper); ok {
			return k, true
		}
	}
	return nil, false
}

// tailnetIndex finds devices and keys of one host among those of all.
type tailnetIndex struct {
	byID   map[string]int
	byName map[string][]int // in lower case: of names, host names, and names without the number that was added
	keys   map[string][]inventory.DeviceKey
}

// indexTailnet indexes the tailnet of the snapshot once.
func (c *computation) indexTailnet() *tailnetIndex {
	if c.tailnet != nil || c.snap.Tailnet == nil {
		return c.tailnet
	}
	x := &tailnetIndex{make(map[string]int), make(map[string][]int), make(map[string][]inventory.DeviceKey)}
	for i, d := range c.snap.Tailnet.Devices {
		x.byID[d.ID] = i
		names := []string{strings.ToLower(d.Name), strings.ToLower(d.HostName)}
		if at := strings.LastIndexByte(names[0], '-'); at > 0 {
			names = append(names, names[0][:at])
		}
		slices.Sort(names)
		for _, n := range slices.Compact(names) {
			x.byName[n] = append(x.byName[n], i)
		}
	}
	all, _ := c.snap.Tailnet.Keys.Get()
	for _, k := range all {
		x.keys[k.For] = append(x.keys[k.For], k)
	}
	c.tailnet = x
	return x
}

// enterTailnet gives a host what the control server lists of it.
func (c *computation) enterTailnet(h *Host) {
	k, ok := deviceKeeper(c.stepsFor(h.Spec))
	x := c.indexTailnet()
	if !ok || x == nil {
		return
	}
	all := c.snap.Tailnet
	seen := *all
	var own []int
	for _, i := range x.byName[strings.ToLower(h.Name)] {
		if all.Devices[i].Claims(h.Name) {
			own = append(own, i)
		}
	}
	if said, is := c.devicesSaid.of(h.Server.ID, func() (lists.Said, bool) { return k.Device(h.Seen.Facts) }); is {
		if i, there := x.byID[said.ID]; there {
			own = append(own, i)
			h.Device = &DeviceStatus{all.Devices[i]}
		}
	}
	slices.Sort(own)
	seen.Devices = nil
	for _, i := range slices.Compact(own) {
		seen.Devices = append(seen.Devices, all.Devices[i])
	}
	if all.Keys.IsUnread() {
		seen.Keys = inventory.Unread[[]inventory.DeviceKey](all.Keys.Why())
	} else {
		seen.Keys = inventory.Present(x.keys[inventory.KeyName(h.Name)])
	}
	h.Tailnet = &seen
}

// retireDevice adds what deletes the device of a host that leaves. It is the last change on the host, because it may end the
// path that the connection uses. Of a host that does not answer, only disconnected devices with its name are deleted.
func (c *computation) retireDevice(h *Host, add func(Kind, Code, string, ...Field) *Action, code Code, why string) {
	k, ok := deviceKeeper(c.stepsFor(h.Spec))
	if !ok || h.Tailnet == nil || h.Tailnet.Trouble != nil || h.Tailnet.Unlisted {
		return
	}
	own, _ := c.devicesSaid.of(h.Server.ID, func() (lists.Said, bool) { return k.Device(h.Seen.Facts) })
	var changes []Change
	for _, d := range h.Tailnet.Devices {
		if d.ID == own.ID || !d.Connected && d.Claims(h.Name) && c.cfg.Tailnet != nil && c.cfg.Tailnet.Gives(d.Tags) {
			changes = append(changes, Change{Reason: Reason{code, why}, Removes: true, Device: &DeviceChange{Verb: DeleteDevice, Device: d},
				Fields: []Field{{"device in the tailnet", d.Name + ", id " + d.ID, "none"}}})
		}
	}
	if len(changes) == 0 {
		return
	}
	a := add(RetireDevice, code, why, fieldsOf(changes)...)
	a.Step, a.Changes = k.ID(), changes
}

// devicesLeft deletes devices whose hosts are gone: disconnected ones with a tag that hosts get, under names of this configuration that no
// server has. A host that does not answer may be one of them, so then nothing is deleted.
func (c *computation) devicesLeft() {
	seen := c.snap.Tailnet
	if seen == nil || c.cfg.Tailnet == nil || seen.Trouble != nil || seen.Unlisted || c.plan.Narrowed || slices.ContainsFunc(c.servers, c.silent) {
		return
	}
	spoken := c.mentioned()
	for _, d := range seen.Devices {
		if _, ours := c.cfg.Parse(d.Name); !ours || d.Connected || !c.cfg.Tailnet.Gives(d.Tags) || spoken[d.Name] || c.names()[d.Name] ||
			!c.leftOver("the tailnet lists the disconnected device "+d.Name, d.Name) {
			continue
		}
		fields := []Field{{"device in the tailnet", "id " + d.ID, "none"}}
		c.plan.Actions = append(c.plan.Actions, Action{Kind: ForgetDevice, Host: d.Name, Was: d.Name, Origin: drifted, Fields: fields,
			Reason: Reason{codeDeviceLeftOver, "the tailnet lists the disconnected device " + d.Name + ", and no server has this name"},
			Changes: []Change{{Reason: Reason{codeDeviceLeftOver, "no server is called " + d.Name}, Removes: true, Fields: fields,
				Device: &DeviceChange{Verb: DeleteDevice, Device: d}}}})
	}
}

// tailnetTrouble warns of a control server that could not be read.
func (c *computation) tailnetTrouble() {
	if s := c.snap.Tailnet; s != nil && s.Trouble != nil {
		c.plan.Services = append(c.plan.Services, SilentService{tailnetPlace, *s.Trouble})
	}
}

// budget refuses what would make a host a device beyond the number that the tailnet's plan allows, and claims of hosts that could not join.
// All devices with tags count, and those to come for which the configuration reserves room.
func (c *computation) budget(d *draft) {
	t, seen := c.cfg.Tailnet, c.snap.Tailnet
	h := d.host
	if t == nil || seen == nil || seen.Unlisted || !h.Spec.Spec.JoinsTailnet() || h.Leaves {
		return
	}
	if seen.Trouble != nil && !h.Member {
		refuse(d.actions, seen.Trouble)
	}
	if seen.Trouble != nil || t.DeviceBudget == 0 {
		return
	}
	joins := slices.ContainsFunc(d.actions, func(a Action) bool {
		return a.Runs() && (a.Kind == ClaimServer || slices.ContainsFunc(a.Changes, func(c Change) bool { return c.Input == TailnetKey }))
	})
	if !joins || h.Tailnet != nil && len(h.Tailnet.Devices) > 0 { // a device of its name is replaced, not added
		return
	}
	if c.devices == 0 {
		c.devices = t.ReservedDevices
		for _, one := range seen.Devices {
			if len(one.Tags) > 0 {
				c.devices++
			}
		}
	}
	if c.devices < t.DeviceBudget {
		c.devices++
		return
	}
	why := codeDeviceCap.Trouble(fmt.Sprintf("the tailnet has %d devices with tags, %d of them reserved or planned by this run, and device_budget is %d",
		c.devices, c.devices-tagged(seen.Devices), t.DeviceBudget))
	if !h.Member {
		refuse(d.actions, why)
		return
	}
	for i := range d.actions {
		if slices.ContainsFunc(d.actions[i].Changes, func(c Change) bool { return c.Input == TailnetKey }) {
			refuse(d.actions[i:i+1], why)
		}
	}
}

// tagged counts devices with tags.
func tagged(all []inventory.Device) (n int) {
	for _, d := range all {
		if len(d.Tags) > 0 {
			n++
		}
	}
	return n
}
