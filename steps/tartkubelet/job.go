package tartkubelet

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/plan"
	"github.com/macfleet/macfleet/steps/kit"
	"github.com/macfleet/macfleet/steps/launchd"
)

var codeReserveTooLarge = plan.NewCode("reserve-too-large", plan.Warning, "the reserve block leaves no capacity for the Node",
	"reduce cpu or memory in the reserve block of tart_kubelet")

// keepMachines is the flag that turns off the kubelet's garbage collection. A builder's
// virtual machines have no Pods: without the flag they are deleted while being pushed.
const keepMachines = "--disable-vm-gc"

// inTailnet is the flag with which the kubelet reports its tailnet address and serves metrics only there. Without one it
// exits at once, so it comes after the step that joins.
const inTailnet = "--node-ip-source=tailscale"

// capacity is what a host offers its Pods.
type capacity struct {
	cpus int
	mega int64 // mebibytes of memory
}

// capacityOf returns the host's capacity minus its reserve.
func capacityOf(reserve *fleet.Reserve, cpus int, memory int64) (capacity, *plan.Trouble) {
	kept, ok := fleet.Bytes(*reserve.Memory)
	c := capacity{cpus - *reserve.CPU, (memory - kept) >> 20}
	if !ok || c.cpus < 1 || c.mega < 1 {
		return c, codeReserveTooLarge.Trouble(fmt.Sprintf("the host has %d cores and %d MiB of memory, and reserve takes %d cores and %s", cpus, memory>>20, *reserve.CPU, *reserve.Memory))
	}
	return c, nil
}

// kubeletJob renders the kubelet's job for a first setup, an update and a repair. Empty
// values are omitted, and labels are sorted.
func kubeletJob(desired *fleet.TartKubelet, v plan.View, c capacity) launchd.Job {
	h := v.Host
	args := []string{kubeletProgram, "--node-name=" + h.Name, "--kubeconfig=" + kubeletConfig, "--host-cpu=" + strconv.Itoa(c.cpus),
		"--host-memory-mb=" + strconv.FormatInt(c.mega, 10), "--max-pods=" + strconv.Itoa(*desired.MaxPods)}
	if labels := nodeLabels(desired, v); len(labels) > 0 {
		var pairs []string
		for _, key := range slices.Sorted(maps.Keys(labels)) {
			pairs = append(pairs, key+"="+labels[key])
		}
		args = append(args, "--node-labels="+strings.Join(pairs, ","))
	}
	if v.Server.ID != "" {
		args = append(args, "--provider-id="+v.Server.ProviderID())
	}
	if h.Spec.BuildsImages() {
		args = append(args, keepMachines)
	}
	if h.Spec.JoinsTailnet() {
		args = append(args, inTailnet)
	}
	return launchd.Job{Label: kubeletLabel, User: h.User, Arguments: args, RunAtLoad: true, KeepAlive: true, Abandon: true, Throttle: 10,
		Environment: map[string]string{"HOME": "/Users/" + h.User, "PATH": "/usr/local/bin:/opt/homebrew/bin:/usr/bin:/bin:/usr/sbin:/sbin"},
		Stdout:      kubeletLog, Stderr: kubeletLog}
}

// nodeLabels returns the labels of the block, of the fleet and group, and of the server's zone and type. The kubelet
// writes them from its registration on, and removes other labels under its prefix.
func nodeLabels(desired *fleet.TartKubelet, v plan.View) map[string]string {
	labels := make(map[string]string)
	maps.Copy(labels, desired.Labels)
	if h := v.Host; h.LabelPrefix != "" {
		labels[h.LabelPrefix+"/fleet"], labels[h.LabelPrefix+"/group"] = h.Fleet, h.Group
	}
	for _, l := range [][2]string{{labelZone, v.Server.Zone}, {labelRegion, v.Server.Region()}, {labelType, v.Server.Type}} {
		if isLabelValue(l[1]) {
			labels[l[0]] = l[1]
		}
	}
	return labels
}

// Well-known labels for a Node's zone and type. NodeRestriction allows a kubelet to set them on the Node it registers.
const (
	labelZone   = "topology.kubernetes.io/zone"
	labelRegion = "topology.kubernetes.io/region"
	labelType   = "node.kubernetes.io/instance-type"
)

const alphanumeric = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"

// isLabelValue reports whether a text is a valid label value; the provider's names have always been valid.
func isLabelValue(text string) bool {
	return text != "" && len(text) <= 63 && strings.Trim(text, alphanumeric+"-_.") == "" && strings.Trim(text, "-_.") == text
}

// jobSettings compares the job's arguments, the loaded job and the property list, which the
// next boot loads. The latter two are compared for the loaded arguments, so that a changed
// configuration is not drift. text is the wanted property list.
func (s kubeletState) jobSettings(want launchd.Job, text string) []kit.Setting {
	args := strings.Join(want.Arguments, " ")
	all := []kit.Setting{kit.Compare("arguments", args, args), kit.Compare("job in launchd", kit.AsRendered, kit.AsRendered), kit.Compare("job file", kit.AsRendered, kit.AsRendered)}
	if !s.loaded {
		all[0].Seen, all[1].Seen = "none", "not loaded"
	} else {
		if !slices.Equal(s.service.Arguments, want.Arguments) {
			want.Arguments = s.service.Arguments
			all[0].Seen, text = strings.Join(want.Arguments, " "), launchd.Plist(want)
		}
		if differs := s.service.Differs(want); len(differs) > 0 {
			all[1].Seen = "other " + strings.Join(differs, ", ")
		}
	}
	if s.beforeAbandon() {
		want.Abandon = false
		text = launchd.Plist(want)
	}
	switch {
	case !s.isPlist:
		all[2].Seen = "missing"
	case s.withheld != "" && s.withheld != digest(text):
		all[2].Seen = "edited (not shown: it may hold a secret)"
	default:
		all[2].Seen = s.plist.Is(s.withheld != "" || s.plist.Text == text, kit.FileMode)
	}
	return all
}

// beforeAbandon reports whether an older macfleet rendered the job's file, without AbandonProcessGroup. That is no
// drift of the host.
func (s kubeletState) beforeAbandon() bool {
	if s.plist.Text == "" || strings.Contains(s.plist.Text, "<key>AbandonProcessGroup</key>") { // parsing takes long
		return false
	}
	j, err := launchd.ParsePlist(s.plist.Text)
	return err == nil && !j.Abandon
}

// abandons reports whether the job's file sets AbandonProcessGroup. A file that was not read, because it may hold a
// secret, does if it equals the wanted one.
func (s kubeletState) abandons(asWanted bool) bool {
	if s.withheld != "" {
		return asWanted
	}
	j, err := launchd.ParsePlist(s.plist.Text)
	return err == nil && j.Abandon
}

// onDisk returns the arguments in the job's file. ok is false if anything else in it differs
// from the wanted file.
func (s kubeletState) onDisk(want launchd.Job) (args []string, ok bool) {
	j, err := launchd.ParsePlist(s.plist.Text)
	if err != nil || s.plist.Mode != kit.FileMode || j.Program() != want.Program() {
		return nil, false
	}
	want.Arguments, want.Abandon = j.Arguments, j.Abandon
	return j.Arguments, launchd.Plist(want) == s.plist.Text
}

// digest returns the SHA-256 of a text in hex.
func digest(text string) string {
	var short [2 << 10]byte // most texts fit, so nothing is allocated
	sum := sha256.Sum256(append(short[:0], text...))
	return hex.EncodeToString(sum[:])
}

// collects reports whether the current job deletes virtual machines without a Pod. Without a
// job it counts as doing so.
func (s kubeletState) collects() bool {
	if s.loaded {
		return !slices.Contains(s.service.Arguments, keepMachines)
	}
	if j, err := launchd.ParsePlist(s.plist.Text); err == nil {
		return !slices.Contains(j.Arguments, keepMachines)
	}
	return !slices.ContainsFunc(s.others, func(o otherJob) bool { return o.keepsMachines })
}
