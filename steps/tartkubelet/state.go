package tartkubelet

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/macfleet/macfleet/steps/kit"
	"github.com/macfleet/macfleet/steps/launchd"
)

// The kubelet's paths on a host.
const (
	kubeletLabel   = "dev.macfleet.tart-kubelet"
	kubeletTarget  = "system/" + kubeletLabel
	kubeletPlist   = "/Library/LaunchDaemons/" + kubeletLabel + ".plist"
	kubeletProgram = "/usr/local/bin/tart-kubelet"
	kubeletConfig  = "/etc/tart-kubelet/kubeconfig"
	kubeletLog     = "/var/log/tart-kubelet.log"
)

// kubeletFolders must belong to the login user, whom the kubelet runs as.
var kubeletFolders = []string{"/var/log/tart-vms", "/var/lib/tart-userdata", kubeletLog}

// kubeletState is the kubelet's state on a host at one moment.
type kubeletState struct {
	receipt kit.Receipt
	program kit.InstalledFile
	kept    []string
	free    int64
	config  seenKubeconfig

	plist    kit.FileState
	isPlist  bool
	withheld string          // digest of a plist that may hold a secret; empty: it was read
	loaded   bool            // the job is loaded
	service  launchd.Service // the loaded job
	disabled bool            // the job is disabled in launchd

	others    []otherJob
	plists    []string // other property lists that run a tart-kubelet
	processes []kubeletProcess
	work      []kit.Working
	machines  []string // local virtual machines of the login user
	owners    map[string]string
	cpus      int
	memory    int64 // bytes
	now       int64 // Unix time of the host's clock
}

// otherJob is a job with another label that involves the same program.
type otherJob struct {
	target, path, program string
	pid                   int
	keepsMachines         bool // it runs with --disable-vm-gc
	abandons              bool // its child processes survive it
}

// kubeletProcess is a process of a tart-kubelet.
type kubeletProcess struct {
	pid, parent int
	age         int64 // seconds
	program     string
}

// readKubelet parses the answer of the script tart_kubelet-state.
func readKubelet(r *kit.Reader, id string) kubeletState {
	s := kubeletState{free: kit.UnknownSpace, owners: make(map[string]string)}
	r.Parts(id, s.take)
	return s
}

func (s *kubeletState) take(p kit.Part) (err error) {
	switch p.Name {
	case "file", "withheld":
		return s.file(p)
	case "program":
		return s.program.Read(p)
	case "kept":
		s.kept = p.Lines()
	case "space":
		s.free = kit.FreeSpace(p)
	case "kubeconfig":
		s.config = seenKubeconfig{there: true, access: p.Value("access"), sha: p.Value("sha"), server: p.Value("server"), claims: p.Value("claims")}
	case "job":
		return s.job(p)
	case "disabled":
		s.disabled = strings.Contains(p.Body, "=> disabled") || strings.Contains(p.Body, "=> true")
	case "other":
		s.other(p)
	case "plists":
		s.plists = p.Lines()
	case "processes":
		return s.process(p)
	case "work":
		s.work, err = kit.Works(p)
	case "machines":
		s.machines = p.Lines()
	case "folders":
		for _, line := range p.Lines() {
			owner, path, _ := strings.Cut(line, " ")
			s.owners[path] = owner
		}
	case "hardware":
		if err = p.Worked(); err == nil {
			words := strings.Fields(p.Body)
			if len(words) == 2 {
				s.cpus, err = strconv.Atoi(words[0])
			}
			if len(words) == 2 && err == nil {
				s.memory, err = strconv.ParseInt(words[1], 10, 64)
			}
			if len(words) != 2 || err != nil {
				err = fmt.Errorf("malformed cores and memory %q", p.Body)
			}
		}
	case "now":
		s.now, err = strconv.ParseInt(strings.TrimSpace(p.Body), 10, 64)
	default:
		err = kit.ErrPart
	}
	return err
}

func (s *kubeletState) file(p kit.Part) error {
	mode, path, _ := strings.Cut(p.Of, " ")
	if path != kubeletPlist {
		return s.receipt.Read(p.Body)
	}
	s.isPlist, s.withheld, s.plist = true, p.Value("sha"), kit.FileState{Text: p.Body, Mode: mode}
	return nil
}

func (s *kubeletState) job(p kit.Part) (err error) {
	if err := kit.JobCode(p.Exit); err != nil {
		return err
	}
	if s.loaded = p.Exit == 0; s.loaded {
		s.service, err = launchd.ParsePrint(strings.TrimLeft(p.Body, "\n"))
	}
	return err
}

// other parses the launchctl output of another job.
func (s *kubeletState) other(p kit.Part) {
	j := otherJob{target: p.Of}
	for _, line := range p.Lines() {
		key, value, _ := strings.Cut(strings.TrimSpace(line), " = ")
		switch key {
		case "path":
			j.path = value
		case "program":
			j.program = value
		case "pid":
			j.pid, _ = strconv.Atoi(value) // 0: unknown
		case "gc":
			j.keepsMachines = value == "off"
		case "children":
			j.abandons = value == "survive"
		}
	}
	s.others = append(s.others, j)
}

func (s *kubeletState) process(p kit.Part) error {
	for _, line := range p.Lines() {
		words := strings.Fields(line)
		if len(words) != 4 {
			return fmt.Errorf("malformed process line %q", line)
		}
		pid, err := strconv.Atoi(words[0])
		parent, perr := strconv.Atoi(words[1])
		age, aerr := elapsed(words[2])
		if err := errors.Join(err, perr, aerr); err != nil {
			return err
		}
		s.processes = append(s.processes, kubeletProcess{pid, parent, age, words[3]})
	}
	return p.Worked()
}

// elapsed parses the age of a process as ps shows it: [[days-]hours:]minutes:seconds.
func elapsed(text string) (seconds int64, err error) {
	days, clock, found := strings.Cut(text, "-")
	if !found {
		days, clock = "0", text
	}
	fields := strings.Split(clock, ":")
	if len(fields) == 2 {
		fields = append([]string{"0"}, fields...)
	}
	if len(fields) != 3 {
		return 0, fmt.Errorf("malformed time %q", text)
	}
	for i, field := range append([]string{days}, fields...) {
		n, err := strconv.ParseUint(field, 10, 31)
		if err != nil {
			return 0, fmt.Errorf("malformed time %q", text)
		}
		seconds = seconds*[]int64{1, 24, 60, 60}[i] + int64(n)
	}
	return seconds, nil
}

// own returns the job's process, unless it ended while the state was being read.
func (s *kubeletState) own() (kubeletProcess, bool) {
	for _, p := range s.processes {
		if s.loaded && s.service.PID != 0 && p.pid == s.service.PID {
			return p, true
		}
	}
	return kubeletProcess{}, false
}

// virtualMachines returns the login user's virtual machines and every running one.
func (s *kubeletState) virtualMachines() []string {
	out := append(slices.Clone(s.machines), kit.Running(s.work)...)
	slices.Sort(out)
	return slices.Compact(out)
}
