package tartkubelet

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/plan"
	"github.com/macfleet/macfleet/steps/kit"
	"github.com/macfleet/macfleet/steps/launchd"
)

var codeReserveTooLarge = plan.NewCode("reserve-too-large", plan.Warning, "the reserve block leaves nothing of the host for its Node",
	"set less in the reserve block of tart_kubelet")

// keepMachines is the flag with which a kubelet deletes no virtual machine by
// itself. A builder's machines are nobody's Pods: without the flag they are
// deleted while they are being pushed.
const keepMachines = "--disable-vm-gc"

// capacity is what a host offers to Pods.
type capacity struct {
	cpus int
	mega int64 // mebibytes of memory
}

// capacityOf is what the host has, less what it keeps for itself.
func capacityOf(reserve *fleet.Reserve, cpus int, memory int64) (capacity, *plan.Trouble) {
	kept, ok := fleet.Bytes(*reserve.Memory)
	c := capacity{cpus - *reserve.CPU, (memory - kept) >> 20}
	if !ok || c.cpus < 1 || c.mega < 1 {
		return c, codeReserveTooLarge.Trouble(fmt.Sprintf("the host has %d cores and %d MiB of memory, and reserve keeps %d cores and %s of them", cpus, memory>>20, *reserve.CPU, *reserve.Memory))
	}
	return c, nil
}

// kubeletJob is the one renderer of the agent's job, for a first set-up, an
// update and a repair alike. What is empty is left out, and labels have one order.
// Once a step puts hosts into a tailnet, a host that has it gets
// --node-ip-source=tailscale here, behind --node-labels: only then, as a kubelet
// without tailscale beside it ends at once.
func kubeletJob(wish *fleet.TartKubelet, v plan.View, c capacity) launchd.Job {
	h := v.Host
	args := []string{kubeletProgram, "--node-name=" + h.Name, "--kubeconfig=" + kubeletConfig, "--host-cpu=" + strconv.Itoa(c.cpus),
		"--host-memory-mb=" + strconv.FormatInt(c.mega, 10), "--max-pods=" + strconv.Itoa(*wish.MaxPods)}
	if labels := nodeLabels(wish, v); len(labels) > 0 {
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
	return launchd.Job{Label: kubeletLabel, User: h.User, Arguments: args, RunAtLoad: true, KeepAlive: true, Abandon: true, Throttle: 10,
		Environment: map[string]string{"HOME": "/Users/" + h.User, "PATH": "/usr/local/bin:/opt/homebrew/bin:/usr/bin:/bin:/usr/sbin:/sbin"},
		Stdout:      kubeletLog, Stderr: kubeletLog}
}

// nodeLabels are those of the block, where the host belongs, and where its server stands and what it is, by
// which schedulers and dashboards tell Nodes apart. The agent is their one writer: what somebody else writes
// under its prefix it takes off again, and they are on the Node from its registration on.
func nodeLabels(wish *fleet.TartKubelet, v plan.View) map[string]string {
	labels := make(map[string]string)
	maps.Copy(labels, wish.Labels)
	if h := v.Host; h.LabelPrefix != "" {
		labels[h.LabelPrefix+"/fleet"], labels[h.LabelPrefix+"/group"] = h.Fleet, h.Group
	}
	for key, value := range map[string]string{labelZone: v.Server.Zone, labelRegion: v.Server.Region(), labelType: v.Server.Type} {
		if labelValue.MatchString(value) {
			labels[key] = value
		}
	}
	return labels
}

// The labels that Kubernetes knows for a Node's place and kind. A kubelet may set them on its own Node, also
// where NodeRestriction counts.
const (
	labelZone   = "topology.kubernetes.io/zone"
	labelRegion = "topology.kubernetes.io/region"
	labelType   = "node.kubernetes.io/instance-type"
)

// labelValue is what the cluster takes as a label's value; the provider's names have never been anything else.
var labelValue = regexp.MustCompile(`^[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$`)

// jobSettings compare the job with what is wanted: its arguments, and the rest of it in
// launchd and on the disk, from which the next boot takes it. The rest is compared for the
// arguments that launchd has, so that another wish is no drift of it. text is the property
// list of what is wanted.
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
		all[2].Seen = "edited, and it may hold a secret"
	default:
		all[2].Seen = s.plist.Is(s.withheld != "" || s.plist.Text == text, kit.FileMode)
	}
	return all
}

// beforeAbandon reports whether the job's file is one that an older macfleet has rendered, which did not say that what
// the job has started outlives it. That is no drift of the host.
func (s kubeletState) beforeAbandon() bool {
	j, err := launchd.ParsePlist(s.plist.Text)
	return err == nil && !j.Abandon
}

// abandons reports whether the job's file says that what the job has started outlives it. One that may hold a secret was
// not read: it says so where it is as it is wanted.
func (s kubeletState) abandons(asWanted bool) bool {
	if s.withheld != "" {
		return asWanted
	}
	j, err := launchd.ParsePlist(s.plist.Text)
	return err == nil && j.Abandon
}

// onDisk returns the arguments in the job's file, where that is like the wanted one but
// for them.
func (s kubeletState) onDisk(want launchd.Job) (args []string, ok bool) {
	j, err := launchd.ParsePlist(s.plist.Text)
	if err != nil || s.plist.Mode != kit.FileMode || j.Program() != want.Program() {
		return nil, false
	}
	want.Arguments, want.Abandon = j.Arguments, j.Abandon
	return j.Arguments, launchd.Plist(want) == s.plist.Text
}

// digest is the SHA-256 of a text, in hex.
func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// collects reports whether the job that runs here deletes virtual machines that no
// Pod is behind. Where none was ever set up, it does: nothing says that machines
// are kept.
func (s kubeletState) collects() bool {
	if s.loaded {
		return !slices.Contains(s.service.Arguments, keepMachines)
	}
	if j, err := launchd.ParsePlist(s.plist.Text); err == nil {
		return !slices.Contains(j.Arguments, keepMachines)
	}
	return !slices.ContainsFunc(s.others, func(o otherJob) bool { return o.keepsMachines })
}
