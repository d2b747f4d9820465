package mac

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/macfleet/macfleet/internal/sandbox/agent"
)

// Times of a kubelet.
const (
	crashesAfter   = time.Second     // after which a crashing kubelet exits
	registersAfter = 2 * time.Second // the cluster never sees one that exits earlier
	collectsEvery  = 5 * time.Minute // between two collections of virtual machines without a Pod
)

// crashLine is in the binary of a kubelet that crashes on every Mac.
const crashLine = "crashes"

// startKubelet starts a kubelet in a job's process, or ends it if it cannot run.
func (v *visit) startKubelet(l *launch, j *job, head []byte, due, now time.Time) {
	own, tart, fault := v.configure(l.proc, head)
	var wrongFlags flagFault
	switch {
	case errors.As(fault, &wrongFlags):
		_, _ = fmt.Fprintf(l.proc.stderr, "%s\nUsage of %s:\n", fault, j.About.Program)
		j.dies(ending{Code: 2}, 0, due, now)
		return
	case fault != nil:
		_, _ = fmt.Fprintf(l.proc.stderr, "ERROR\tsetup\t%s\n", fault)
		j.dies(ending{Code: 1}, 0, due, now)
		return
	case hasLine(head, crashLine) || own.Version == v.switched(refusesSwitch):
		_, _ = fmt.Fprint(l.proc.stderr, "INFO\tsetup\tstarting manager\npanic: runtime error: invalid memory address or nil pointer dereference\n")
		j.dies(ending{Code: 2}, crashesAfter, due, now)
		return
	}
	_, _ = fmt.Fprintf(l.proc.stderr, "INFO\tsetup\tstarting manager\tnode=%s\n", own.Node)
	own.Job, own.PID, own.Started = j.About.Label, j.PID, now.Add(-v.session.machine.ahead()).UTC()
	j.Kubelet, j.Tart, j.Home, j.Swept = &own, tart, tartHome(l.proc), now
}

// dies records how a short-lived process ends. If launchd restarts it each time, the starts since then
// have happened too.
func (j *job) dies(how ending, life time.Duration, due, now time.Time) {
	if period := max(j.About.Throttle, life, time.Second); j.About.Keep.after(how) && !due.IsZero() {
		missed := now.Sub(due) / period
		j.Runs += int(missed)
		j.Started = due.Add(missed * period)
	}
	j.Exit, j.Ends = how, j.Started.Add(life)
	j.plan(false, now)
}

// configure reads a kubelet's flags and files. The error is why it exits.
func (v *visit) configure(p *proc, head []byte) (own agent.Kubelet, tart string, err error) {
	set, err := parseKubelet(p.args(), p.env)
	if err != nil {
		return own, "", err
	}
	name := set["kubeconfig"]
	if name == "" {
		name = p.env["KUBECONFIG"]
	}
	text, err := v.read(p, name)
	if err != nil {
		return own, "", fmt.Errorf("unable to load kubeconfig %q: %s", name, why(err))
	}
	token, err := readKubeconfig(text)
	if err != nil {
		return own, "", fmt.Errorf("unable to load kubeconfig %q: %w", name, err)
	}
	address := set["node-ip"]
	if set["node-ip-source"] == "tailscale" {
		if !v.exists("/usr/local/bin/tailscale") {
			return own, "", errors.New("resolve tailnet address: fork/exec /usr/local/bin/tailscale: no such file or directory")
		}
		m, _, err := v.launchd()
		if err != nil {
			return own, "", err
		}
		if address = m.tailnetIP(); address == "" {
			return own, "", errors.New("resolve tailnet address: exit status 1: no current Tailscale IPs; state: NeedsLogin")
		}
	}
	node := set["node-name"]
	if node == "" {
		node, _ = v.hostName()
	}
	// The numbers were checked before.
	cpu, _ := strconv.Atoi(set["host-cpu"])
	memory, _ := strconv.Atoi(set["host-memory-mb"])
	pods, _ := strconv.Atoi(set["max-pods"])
	noGC, _ := strconv.ParseBool(set["disable-vm-gc"])
	return agent.Kubelet{Node: node, ProviderID: set["provider-id"], Labels: nodeLabels(set["node-labels"]), Address: address, Metrics: metricsAddress(set, address),
		CPU: cpu, MemoryMB: memory, MaxPods: pods, GC: !noGC, Version: codeValue(head, "version"), Token: token}, set["tart-binary"], nil
}

// kubeletNotes are the kubelets of a machine when they were last announced.
type kubeletNotes struct {
	Received bool            `json:"told"`     // whether the world received it
	All      []agent.Kubelet `json:"kubelets"` // nil = never any
}

var kubeletsRecord = inFirmware("kubelets")

// announced returns the kubelets when they were last announced; an unreadable record is empty.
func (v *visit) announced() (last kubeletNotes) {
	if v.recall(kubeletsRecord, &last) != nil {
		return kubeletNotes{}
	}
	return last
}

// announce reports the running kubelets to the world after a change. Times are real, not the
// machine's.
func (v *visit) announce(m *manager) error {
	last, report := v.announced(), v.session.machine.world().Kubelets
	all := v.kubelets(m, last.All)
	if slices.EqualFunc(last.All, all, sameRun) && (last.Received || last.All == nil || report == nil) {
		return nil
	}
	if err := v.keep(kubeletsRecord, kubeletNotes{report != nil, append([]agent.Kubelet{}, all...)}); err != nil || report == nil {
		return err
	}
	return report(all)
}

// sameRun reports whether two records are of one run in the same state.
func sameRun(a, b agent.Kubelet) bool {
	return a.Version == b.Version && a.NoVMs == b.NoVMs && a.Job == b.Job && a.PID == b.PID && a.Started.Equal(b.Started) && a.Ended.Equal(b.Ended)
}

// kubelets returns the running kubelets, and those that were announced and have ended since.
func (v *visit) kubelets(m *manager, before []agent.Kubelet) []agent.Kubelet {
	var running []agent.Kubelet
	for _, target := range slices.Sorted(maps.Keys(m.Jobs)) {
		j := m.Jobs[target]
		if m.Halt == nil && j.Kubelet != nil && j.PID == j.Kubelet.PID && !j.leaving() {
			k := *j.Kubelet
			k.NoVMs = v.noVMs(j)
			running = append(running, k)
		}
	}
	started := slices.ContainsFunc(running, func(k agent.Kubelet) bool {
		return !slices.ContainsFunc(before, func(b agent.Kubelet) bool { return b.PID == k.PID && b.Started.Equal(k.Started) })
	})
	now := time.Now().UTC()
	var ended []agent.Kubelet
	for _, k := range before {
		if slices.ContainsFunc(running, func(r agent.Kubelet) bool { return r.PID == k.PID && r.Started.Equal(k.Started) }) {
			continue
		}
		if k.Runs() {
			k.Ended = now
		}
		if !started && v.session.machine.between(k.Started, k.Ended) >= registersAfter {
			ended = append(ended, k)
		}
	}
	return append(running, ended...)
}

// Kubelets returns the kubelets of the machine: the running ones, and those that have ended since the
// last start of one.
func (m *Machine) Kubelets() (all []agent.Kubelet, err error) {
	err = m.asRoot(func(v *visit, _ *proc) error {
		all = v.announced().All
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("list the kubelets of the machine in %s: %w", m.dir, err)
	}
	return all, nil
}

// RefuseKubelet makes every kubelet of a version crash a second after its start on this machine; ""
// ends that.
func (m *Machine) RefuseKubelet(version string) error {
	if version == "" {
		version = refusesNone
	}
	return m.SetSwitch(refusesSwitch, version)
}

const (
	refusesSwitch = "kubelet-refuses"
	refusesNone   = "none"
)

// kubeletSwitches are the ways in which a kubelet can be made to fail.
func kubeletSwitches() []Switch {
	return []Switch{{refusesSwitch, "the kubelet version that crashes on this Mac a second after each start", []string{refusesNone, "VERSION"}}}
}

// RefusedKubelet returns the version of the kubelet that crashes on this machine, or "".
func (m *Machine) RefusedKubelet() (version string, err error) {
	err = m.asRoot(func(v *visit, _ *proc) error {
		if version = v.switched(refusesSwitch); version == refusesNone {
			version = ""
		}
		return nil
	})
	return version, err
}

// noVMs returns why a job's kubelet cannot start a virtual machine, or "".
func (v *visit) noVMs(j *job) string {
	who, _ := v.session.jobUser(j)
	at, err := v.console()
	switch {
	case !v.exists(j.Tart):
		return "fork/exec " + j.Tart + ": no such file or directory"
	case err != nil || at.User != who.name:
		return fmt.Sprintf("tart run: ensure gui session: Aqua session for uid %d did not come up within 30s after SIGHUP loginwindow", who.uid)
	}
	return ""
}
