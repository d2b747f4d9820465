package kit

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/plan"
)

// Working is a process that runs, builds or transfers a virtual machine, or another build.
type Working struct{ pid, does, machine string }

// runnerJob is the program that runs a job of GitHub's runner.
const runnerJob = "Runner.Worker"

// RunsJob reports whether one of them is a job of a CI agent.
func RunsJob(all []Working) bool {
	return slices.ContainsFunc(all, func(w Working) bool { return w.does == runnerJob })
}

// String formats the process for display.
func (w Working) String() string {
	switch w.does {
	case "packer":
		return "packer " + w.machine + " (pid " + w.pid + ")"
	case runnerJob:
		return "a job of a GitHub runner (pid " + w.pid + ")"
	case "runner-update":
		return "an update of a GitHub runner (pid " + w.pid + ")"
	case "xcodebuild":
		return "xcodebuild (pid " + w.pid + ")"
	}
	return "tart " + w.does + " " + w.machine + " (pid " + w.pid + ")"
}

// Works parses the output of the script function work.
func Works(p Part) ([]Working, error) {
	var out []Working
	for _, line := range p.Lines() {
		words := strings.Fields(line)
		if len(words) < 2 {
			return nil, fmt.Errorf("malformed process line %q", line)
		}
		out = append(out, Working{pid: words[0], does: words[1], machine: strings.Join(words[2:], " ")})
	}
	return out, p.Worked()
}

// Running returns the names of the running virtual machines.
func Running(all []Working) []string {
	var out []string
	for _, w := range all {
		if w.does == "run" && !slices.Contains(out, w.machine) {
			out = append(out, w.machine)
		}
	}
	slices.Sort(out)
	return out
}

// Tasks converts processes to tasks of a plan.
func Tasks(all []Working) []plan.Task {
	var out []plan.Task
	for _, w := range all {
		t := plan.Task{Text: w.String()}
		if w.does == "run" {
			t.VM = w.machine
		}
		out = append(out, t)
	}
	return out
}

// AllTasks is what a step that has read all work on a host finds.
func AllTasks(all []Working) inventory.Seen[[]plan.Task] { return inventory.Present(Tasks(all)) }

// Forced returns the "force" argument of scripts that check for running work.
func Forced(v plan.View) string { return Choose(v.Force, "force", "") }

// DiskFull returns the trouble that the disk has too little free space.
func DiskFull(free, needed int64) *plan.Trouble {
	return &plan.Trouble{Code: plan.CodeDiskFull,
		Text:   fmt.Sprintf("disk full: %s free, needs %s", size(free), size(needed)),
		Remedy: "delete unused images on the host, as the login user (tart prune --older-than 7), then: macfleet plan"}
}

// size formats a number of bytes.
func size(bytes int64) string {
	if bytes >= 10_000_000_000 {
		return fmt.Sprintf("%d GB", bytes/1_000_000_000)
	}
	return fmt.Sprintf("%d MB", bytes/1_000_000)
}

// UnknownSpace stands for free space that could not be read.
const UnknownSpace = -1

// FreeSpace returns the free bytes from the last line of `df -k`.
func FreeSpace(p Part) int64 {
	words := strings.Fields(p.Body)
	if p.Exit != 0 || len(words) < 6 {
		return UnknownSpace
	}
	kilobytes, err := strconv.ParseInt(words[3], 10, 64)
	if err != nil || kilobytes < 0 {
		return UnknownSpace
	}
	return kilobytes * 1024
}
