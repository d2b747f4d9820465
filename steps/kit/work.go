package kit

import (
	"fmt"
	"slices"
	"strings"

	"github.com/macfleet/macfleet/plan"
)

// Working is a process of a virtual machine, or of what makes or moves one.
type Working struct{ pid, does, machine string }

// String is how a person sees it.
func (w Working) String() string {
	if w.does == "packer" {
		return "packer " + w.machine + " (pid " + w.pid + ")"
	}
	return "tart " + w.does + " " + w.machine + " (pid " + w.pid + ")"
}

// Works reads the lines of the script function work.
func Works(p Part) ([]Working, error) {
	var out []Working
	for _, line := range p.Lines() {
		words := strings.Fields(line)
		if len(words) < 2 {
			return nil, fmt.Errorf("%q is no process", line)
		}
		out = append(out, Working{pid: words[0], does: words[1], machine: strings.Join(words[2:], " ")})
	}
	return out, p.Worked()
}

// Running are the names of the virtual machines that run.
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

// Tasks are processes as a plan tells of them.
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

// Forced is what a script is told that looks for work itself.
func Forced(v plan.View) string { return Choose(v.Force, "force", "") }

// DiskFull refuses what would not fit.
func DiskFull(free, needed int64) *plan.Trouble {
	return &plan.Trouble{Code: plan.CodeDiskFull,
		Text:   fmt.Sprintf("the disk has %s free, and %s are needed", size(free), size(needed)),
		Remedy: "delete what is not needed, such as images (as the login user: tart prune --older-than 7), and run macfleet plan again"}
}

// size is a number of bytes as a person reads it.
func size(bytes int64) string {
	if bytes >= 10_000_000_000 {
		return fmt.Sprintf("%d GB", bytes/1_000_000_000)
	}
	return fmt.Sprintf("%d MB", bytes/1_000_000)
}

// UnknownSpace is the free space of a disk that nobody could read.
const UnknownSpace = -1

// FreeSpace reads the last line of `df -k`: how many bytes are free.
func FreeSpace(p Part) int64 {
	words := strings.Fields(p.Body)
	if p.Exit != 0 || len(words) < 6 {
		return UnknownSpace
	}
	var kilobytes int64
	if n, err := fmt.Sscan(words[3], &kilobytes); n != 1 || err != nil || kilobytes < 0 {
		return UnknownSpace
	}
	return kilobytes * 1024
}
