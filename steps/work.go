package steps

import (
	"fmt"
	"slices"
	"strings"

	"github.com/macfleet/macfleet/plan"
)

// working is a process of a virtual machine, or of what makes or moves one.
type working struct{ pid, does, machine string }

// String is how a person sees it.
func (w working) String() string {
	if w.does == "packer" {
		return "packer " + w.machine + " (pid " + w.pid + ")"
	}
	return "tart " + w.does + " " + w.machine + " (pid " + w.pid + ")"
}

// works reads the lines of the script function work.
func works(p part) ([]working, error) {
	var out []working
	for _, line := range p.lines() {
		words := strings.Fields(line)
		if len(words) < 2 {
			return nil, fmt.Errorf("%q is no process", line)
		}
		out = append(out, working{pid: words[0], does: words[1], machine: strings.Join(words[2:], " ")})
	}
	return out, p.worked()
}

// running are the names of the virtual machines that run.
func running(all []working) []string {
	var out []string
	for _, w := range all {
		if w.does == "run" && !slices.Contains(out, w.machine) {
			out = append(out, w.machine)
		}
	}
	slices.Sort(out)
	return out
}

// tasks are processes as a plan tells of them.
func tasks(all []working) []plan.Task {
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

// forced is what a script is told that looks for work itself.
func forced(v plan.View) string { return choose(v.Force, "force", "") }

// diskFull refuses what would not fit.
func diskFull(free, needed int64) *plan.Trouble {
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

// unknownSpace is the free space of a disk that nobody could read.
const unknownSpace = -1

// freeSpace reads the last line of `df -k`: how many bytes are free.
func freeSpace(p part) int64 {
	words := strings.Fields(p.body)
	if p.exit != 0 || len(words) < 6 {
		return unknownSpace
	}
	var kilobytes int64
	if n, err := fmt.Sscan(words[3], &kilobytes); n != 1 || err != nil || kilobytes < 0 {
		return unknownSpace
	}
	return kilobytes * 1024
}
