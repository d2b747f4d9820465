package sandbox

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/macfleet/macfleet/internal/sandbox/mac"
)

// Paths and labels of a fleet's kubelet.
const (
	kubeletLabel = "dev.macfleet.tart-kubelet"
	kubeletJob   = "system/" + kubeletLabel
	daemonFolder = "/Library/LaunchDaemons/"
	kubeletPlist = daemonFolder + kubeletLabel + ".plist"
	otherLabel   = "dev.tuist.tart-kubelet" // of the tool that managed the fleet before
	otherPlist   = daemonFolder + otherLabel + ".plist"
	staleVersion = "0.0.1"
)

// kubeletTroubles are the incidents of a host's kubelet. They need a running one.
func kubeletTroubles() []trouble {
	return []trouble{
		{
			Incident: Incident{"killed-by-codesigning", "someone overwrote the kubelet's file in place: its bytes are correct, but the kernel kills every new process of it"},
			remember: needKubelet, cause: breakSignature, lasts: signatureBroken, cure: onKubelet(restoreSignature),
		},
		{
			Incident: Incident{"kubelet-crash-loop", "the kubelet exits a second after each start, only on this host"},
			remember: needKubelet, cause: letCrash, lasts: letsCrash, cure: onMac(stopCrashes),
		},
		{
			Incident: Incident{"kubelet-respawn-stuck", "the kubelet exited cleanly, and launchd does not restart it"},
			remember: needKubelet, cause: onMac(stick), lasts: kubeletAway, cure: onMac(startKubelet),
		},
		{
			Incident: Incident{"plist-changed-under-job", "someone replaced the kubelet's property list, and launchd still uses the old one"},
			remember: needKubelet, cause: changePlist, lasts: plistChanged, cure: onMac(reloadChanged),
		},
		{
			Incident: Incident{"gc-on-builder", "the kubelet's job was loaded by an older tool, whose kubelet deletes virtual machines without a Pod"},
			remember: needKubelet, cause: collectAgain, lasts: collectsAgain, cure: onMac(reloadChanged),
		},
		{
			Incident: Incident{"stale-binary-running", "someone replaced the kubelet's file, and the old process still runs"},
			remember: needKubelet, cause: replaceBinary, lasts: kubeletOld, cure: onMac(restartOld),
		},
		{
			Incident: Incident{"second-kubelet", "a job of an older tool runs a second kubelet"},
			remember: needKubelet, cause: addKubelet, lasts: secondThere, cure: onMac(removeSecond),
		},
		{
			Incident: Incident{"btm-disallowed", "someone turned off the kubelet's background item, so launchd does not start it"},
			remember: needKubelet, cause: onMac(disallow), lasts: disallowed, cure: onMac(allow),
		},
	}
}

// needKubelet refuses a host without a kubelet.
func needKubelet(_ context.Context, v *victim) error {
	machine, err := v.machine()
	if err != nil {
		return err
	}
	job, ok, err := machine.Job(kubeletJob)
	if err == nil && !ok {
		err = fmt.Errorf("the host has no kubelet (no job %s); fix: apply a fleet with tart_kubelet to it first", kubeletLabel)
	}
	v.record.Settings = map[string]string{"program": job.Program}
	return err
}

func onKubelet(do func(m *mac.Machine, program string) error) func(context.Context, *victim) error {
	return func(_ context.Context, v *victim) error {
		machine, err := v.machine()
		if err != nil {
			return err
		}
		return do(machine, v.record.Settings["program"])
	}
}

func breakSignature(ctx context.Context, v *victim) error {
	return onKubelet(func(m *mac.Machine, program string) error {
		if err := m.BreakSignature(program); err != nil {
			return err
		}
		return settled(ctx, m, m.RestartJob(kubeletJob))
	})(ctx, v)
}

// settled waits until the Mac shows the effect of an incident.
func settled(ctx context.Context, m *mac.Machine, err error) error {
	if err != nil {
		return err
	}
	return m.Settle(ctx)
}

func signatureBroken(_ context.Context, v *victim) (bool, error) {
	machine, err := v.machine()
	if err != nil {
		return false, err
	}
	return machine.SignatureBroken(v.record.Settings["program"])
}

func restoreSignature(m *mac.Machine, program string) error {
	broken, err := m.SignatureBroken(program)
	if err != nil || !broken {
		return err
	}
	if err := m.TrustSignature(program); err != nil {
		return err
	}
	return startKubelet(m)
}

// startKubelet starts the kubelet's job if it is loaded and has no process.
func startKubelet(m *mac.Machine) error {
	job, ok, err := m.Job(kubeletJob)
	if err != nil || !ok || job.PID != 0 {
		return err
	}
	return m.RestartJob(kubeletJob)
}

func letCrash(ctx context.Context, v *victim) error {
	machine, err := v.machine()
	if err != nil {
		return err
	}
	text, err := machine.ReadFile(v.record.Settings["program"])
	if err != nil {
		return err
	}
	version := regexp.MustCompile(`(?m)^version=(.*)$`).FindSubmatch(text)
	if version == nil {
		return fmt.Errorf("%s has no version", v.record.Settings["program"])
	}
	if err := machine.RefuseKubelet(string(version[1])); err != nil {
		return err
	}
	if err := machine.RestartJob(kubeletJob); err != nil {
		return err
	}
	return settled(ctx, machine, machine.Advance(crashedBy)) // its first exit shows
}

// crashedBy is when a crashing kubelet has exited once.
const crashedBy = 2 * time.Second

func letsCrash(_ context.Context, v *victim) (bool, error) {
	machine, err := v.machine()
	if err != nil {
		return false, err
	}
	refused, err := machine.RefusedKubelet()
	return refused != "", err
}

func stopCrashes(m *mac.Machine) error {
	refused, err := m.RefusedKubelet()
	if err != nil || refused == "" {
		return err
	}
	if err := m.RefuseKubelet(""); err != nil {
		return err
	}
	return startKubelet(m)
}

func stick(m *mac.Machine) error { return m.StickJob(kubeletJob) }

func kubeletAway(_ context.Context, v *victim) (bool, error) {
	machine, err := v.machine()
	if err != nil {
		return false, err
	}
	job, ok, err := machine.Job(kubeletJob)
	return ok && job.PID == 0, err
}

// maxPods finds the value of the kubelet's flag in a property list.
var maxPods = regexp.MustCompile(`(--max-pods(?:=|</string>\s*<string>))[0-9]+`)

// changePlist makes launchd load the job from a different file, and then restores the present one.
func changePlist(_ context.Context, v *victim) error {
	return v.loadOther(func(right string) string {
		wrong := maxPods.ReplaceAllString(right, "${1}1")
		if wrong == right {
			wrong = strings.Replace(wrong, "</array>", "\t<string>--max-pods=1</string>\n</array>", 1)
		}
		return wrong
	})
}

// collectAgain turns the kubelet's garbage collection on, as a job that an older tool wrote has it.
func collectAgain(_ context.Context, v *victim) error {
	return v.loadOther(func(right string) string {
		wrong := strings.Replace(right, "\t\t<string>--disable-vm-gc</string>\n", "", 1)
		return strings.Replace(wrong, "</array>", "\t<string>"+collects+"</string>\n</array>", 1)
	})
}

const collects = "--disable-vm-gc=false"

func collectsAgain(_ context.Context, v *victim) (bool, error) {
	machine, err := v.machine()
	if err != nil {
		return false, err
	}
	job, ok, err := machine.Job(kubeletJob)
	return ok && slices.Contains(job.Args, collects), err
}

// loadOther loads the kubelet's job from another property list, and restores the file.
func (v *victim) loadOther(edit func(string) string) error {
	machine, err := v.machine()
	if err != nil {
		return err
	}
	right, err := machine.ReadFile(kubeletPlist)
	if err != nil {
		return err
	}
	if err := machine.WriteFile(kubeletPlist, []byte(edit(string(right))), 0, 0, 0o644); err != nil {
		return err
	}
	if err := machine.LoadJob(kubeletPlist); err != nil {
		return err
	}
	return machine.WriteFile(kubeletPlist, right, 0, 0, 0o644)
}

func plistChanged(_ context.Context, v *victim) (bool, error) {
	machine, err := v.machine()
	if err != nil {
		return false, err
	}
	job, ok, err := machine.Job(kubeletJob)
	return ok && job.Old, err
}

func reloadChanged(m *mac.Machine) error {
	job, ok, err := m.Job(kubeletJob)
	if err != nil || !ok || !job.Old {
		return err
	}
	return m.LoadJob(job.Path)
}

// replaceBinary replaces the running program with the same bytes in a new file.
func replaceBinary(_ context.Context, v *victim) error {
	machine, err := v.machine()
	if err != nil {
		return err
	}
	program := v.record.Settings["program"]
	text, err := machine.ReadFile(program)
	if err != nil {
		return err
	}
	if err := machine.AgeJob(kubeletJob, staleVersion); err != nil {
		return err
	}
	return machine.WriteFile(program, text, 0, 0, 0o755)
}

func kubeletOld(_ context.Context, v *victim) (bool, error) {
	machine, err := v.machine()
	if err != nil {
		return false, err
	}
	return runsOld(machine)
}

func runsOld(m *mac.Machine) (bool, error) {
	all, err := m.Kubelets()
	for _, k := range all {
		if k.Runs() && k.Job == kubeletLabel && k.Version == staleVersion {
			return true, err
		}
	}
	return false, err
}

func restartOld(m *mac.Machine) error {
	old, err := runsOld(m)
	if err != nil || !old {
		return err
	}
	return m.LoadJob(kubeletPlist)
}

func addKubelet(_ context.Context, v *victim) error {
	machine, err := v.machine()
	if err != nil {
		return err
	}
	text, err := machine.ReadFile(kubeletPlist)
	if err != nil {
		return err
	}
	text = []byte(strings.ReplaceAll(string(text), "<string>"+kubeletLabel+"</string>", "<string>"+otherLabel+"</string>"))
	if err := machine.WriteFile(otherPlist, text, 0, 0, 0o644); err != nil {
		return err
	}
	return machine.LoadJob(otherPlist)
}

func secondThere(_ context.Context, v *victim) (bool, error) {
	machine, err := v.machine()
	if err != nil {
		return false, err
	}
	_, loaded, err := machine.Job("system/" + otherLabel)
	return loaded, err
}

func removeSecond(m *mac.Machine) error {
	if err := m.UnloadJob("system/" + otherLabel); err != nil {
		return err
	}
	return m.Remove(otherPlist)
}

func disallow(m *mac.Machine) error { return m.DisallowItem(kubeletLabel) }
func allow(m *mac.Machine) error    { return m.AllowItem(kubeletLabel) }

func disallowed(_ context.Context, v *victim) (bool, error) {
	machine, err := v.machine()
	if err != nil {
		return false, err
	}
	return machine.ItemDisallowed(kubeletLabel)
}
