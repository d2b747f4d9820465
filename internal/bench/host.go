package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/hosts"
)

// The budgets of processes that an observation with all steps starts on a host: as delivered, and when
// converged, with every file, job and anchor of macfleet.
const (
	deliveredProcesses = 110.0
	convergedProcesses = 130.0
)

// host measures what an observation with all steps costs the host: its processes, counted by strace
// below a real sshd, and the CPU time of the login shell with all that it starts.
func (b *bench) host(ctx context.Context) ([]row, error) {
	if _, err := exec.LookPath("strace"); err != nil || os.Geteuid() != 0 {
		return []row{shown("host", "needs strace, and root")}, nil
	}
	// The login user also reads the stand-in's files.
	if err := os.Chmod(b.dir, 0o755); err != nil {
		return nil, err
	}
	delivered, err := b.hostOf(ctx, "delivered", false, deliveredProcesses)
	if err != nil {
		return nil, err
	}
	converged, err := b.hostOf(ctx, "converged", true, convergedProcesses)
	return append(delivered, converged...), err
}

func (b *bench) hostOf(ctx context.Context, what string, converged bool, budget float64) ([]row, error) {
	m, err := writeStandIn(filepath.Join(b.dir, what))
	if err == nil && !converged {
		err = os.RemoveAll(m.root())
	}
	if err != nil {
		return nil, err
	}
	probes := probesOf(standInUser, everyStep())
	questions := len(probes) + hostQuestions
	sent, err := m.exec(standInUser, probes)
	if err != nil {
		return nil, err
	}
	sent.Line = m.here(sent.Line)
	n, err := processes(ctx, m, sent, questions)
	if err != nil {
		return nil, err
	}
	var cpus []float64
	for range 4 * b.rounds {
		out, u, err := m.run(ctx, sent)
		if err != nil {
			return nil, err
		}
		// There is no claim. On a new host, the marker and sudo's file are missing too.
		if good := strings.Count(out, " end 0\n") + strings.Count(out, " end 4\n"); good != questions {
			return nil, fmt.Errorf("%d of %d questions were answered well:\n%s", good, questions, tail(out))
		}
		cpus = append(cpus, milliseconds(u.cpu))
	}
	return []row{judged(fmt.Sprintf("processes of an observation, all steps, %s host", what), float64(n), budget, ""),
		shown(fmt.Sprintf("  CPU of its %d questions, sshd left out", questions), "%.0f ms", median(cpus))}, nil
}

// hostQuestions is the number of questions that hosts adds to those of the steps.
const hostQuestions = 6

// everyStep is the specification of a member with every step.
func everyStep() fleet.Spec {
	return fleet.Spec{Hostname: &fleet.Hostname{}, Power: &fleet.Power{}, System: &fleet.System{}, AutoLogin: &fleet.AutoLogin{}, VMFirewall: &fleet.VMFirewall{Anchor: new("acme.runners")},
		BuildTools: &fleet.BuildTools{Formulae: []string{"crane"}}, LocalNetwork: &fleet.LocalNetwork{}, Disk: &fleet.Disk{}, Tailscale: &fleet.Tailscale{}, NodeExporter: &fleet.NodeExporter{}, Tart: &fleet.Tart{}, TartKubelet: &fleet.TartKubelet{}, GithubRunner: &fleet.GithubRunner{App: &fleet.GitHubApp{Name: "builders"}, Organization: new("acme")}}.WithBuiltIn().WithDefaults()
}

// processes counts the processes that one command starts below a real sshd.
func processes(ctx context.Context, m standIn, sent hosts.Exec, questions int) (n int, err error) {
	trace := filepath.Join(string(m), "trace")
	f, stop, err := startFleet(ctx, filepath.Join(string(m), "sshd"), 1,
		"ForceCommand exec env PATH="+m.path()+" strace -f -qq -e trace=clone,clone3,fork,vfork -o "+trace+` /bin/sh -c "$SSH_ORIGINAL_COMMAND"`+"\n")
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, stop()) }()
	r, err := observeWith(ctx, f, sent)
	if err != nil {
		return 0, err
	}
	if r.Answers != questions {
		return 0, fmt.Errorf("%d of %d questions were answered", r.Answers, questions)
	}
	text, err := os.ReadFile(trace)
	return 1 + len(started.FindAll(text, -1)), err
}

// started matches the end of strace's line about a new process.
var started = regexp.MustCompile(`(?m)(?:clone|clone3|fork|vfork)(?:\(.*| resumed>.*) = [0-9]+$`)
