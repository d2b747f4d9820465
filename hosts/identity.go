package hosts

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/plan"
)

// absent is the exit code of this package's scripts for a missing file.
const absent = 4

// identity returns the probes of every observation: which machine it is, and whose.
func identity() []question {
	return []question{
		{id: "host.marker", Command: own("file", plan.Login, "host.json")},
		{id: "host.claim", Command: own("file", plan.Login, "claim.json")},
		{id: "host.serial", Command: own("serial", plan.Login)},
		{id: "host.os-version", Command: own("os-version", plan.Login)},
		{id: left, Command: own("left", plan.Login)},
		{id: jobs, Command: own("jobs", plan.Login)},
	}
}

// identify fills in the answers of the identity probes.
func identify(seen *plan.HostSeen) {
	seen.Marker = fromFile(seen.Facts.Get("host.marker"), plan.ParseMarker)
	seen.Claim = fromFile(seen.Facts.Get("host.claim"), parseClaim)
	seen.Serial = fromText(seen.Facts.Get("host.serial"), parseSerial)
	seen.OSVersion = fromText(seen.Facts.Get("host.os-version"), parseVersion)
	enterLeft(seen)
	seen.Jobs = fromText(seen.Facts.Get(jobs), parseJobs)
	if all, ok := seen.Jobs.Get(); ok && len(all) == 0 {
		seen.Jobs = inventory.Absent[[]plan.Job]()
	}
	delete(seen.Facts, jobs) // of most jobs, nothing is kept
}

// fromFile parses the answer of a script that prints one of macfleet's files.
func fromFile[T any](answer inventory.Seen[plan.Answer], parse func(string) (T, error)) inventory.Seen[T] {
	if a, ok := answer.Get(); ok && a.Exit == absent && a.Stdout == "" {
		return inventory.Absent[T]()
	}
	return fromText(answer, parse)
}

// fromText parses an answer that must exist.
func fromText[T any](answer inventory.Seen[plan.Answer], parse func(string) (T, error)) inventory.Seen[T] {
	a, ok := answer.Get()
	if !ok {
		return inventory.Unread[T](answer.Why())
	}
	if a.Exit != 0 {
		return inventory.Unread[T](fmt.Sprintf("exit code %d: %s", a.Exit, lastLine(a.Stderr)))
	}
	v, err := parse(a.Stdout)
	if err != nil {
		return inventory.Unread[T](err.Error())
	}
	return inventory.Present(v)
}

func parseClaim(text string) (plan.Claim, error) {
	var c plan.Claim
	if err := json.Unmarshal([]byte(text), &c); err != nil {
		return plan.Claim{}, fmt.Errorf("claim.json is not valid: %w", err)
	}
	if c.Configuration == "" || c.Name == "" || c.ServerID == "" {
		return plan.Claim{}, fmt.Errorf("claim.json names no configuration, host or server")
	}
	return c, nil
}

func parseSerial(text string) (string, error) {
	found := regexp.MustCompile(`"IOPlatformSerialNumber" = "([^"]+)"`).FindStringSubmatch(text)
	if found == nil {
		return "", errors.New("ioreg printed no IOPlatformSerialNumber")
	}
	return found[1], nil
}

func parseVersion(text string) (string, error) {
	v := strings.TrimSpace(text)
	if v == "" || strings.Trim(v, "0123456789.") != "" {
		return "", fmt.Errorf("unexpected output of sw_vers: %q", v)
	}
	return v, nil
}

// lastLine returns the last non-empty line, which usually has a tool's error.
func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.TrimSpace(lines[len(lines)-1])
}

// left is the probe for what earlier runs left.
const left = "host.left"

// enterLeft parses the answer of left.sh and drops it: it contains the seals of refused
// passwords, and facts are stored and shown.
func enterLeft(seen *plan.HostSeen) {
	answer, ok := seen.Facts.Get(left).Get()
	delete(seen.Facts, left)
	if !ok {
		return
	}
	var undone strings.Builder
	for line := range strings.Lines(answer.Stdout) {
		kind, rest, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		switch kind {
		case "pending":
			seen.Pending = append(seen.Pending, plan.StepID(rest))
		case "undone":
			undone.WriteString(rest + "\n")
		case "armed":
			seen.Armed = parseArmed(rest)
		case "run":
			if e, ok := parseEntered(rest); ok && (seen.Entered == nil || e.Epoch > seen.Entered.Epoch) {
				seen.Entered = &e
			}
		case "refused":
			seen.Refusals = append(seen.Refusals, parseRefusal(rest))
		}
	}
	if u, ok := parseUndone(undone.String()); ok {
		seen.Undone = &u
	}
}

// jobs is the probe for launchd jobs of other systems.
const jobs = "host.jobs"

// parseJobs parses the answer of jobs.sh, and keeps the jobs of systems that control Macs. A job that is disabled and not
// loaded stays away, so it is not kept.
func parseJobs(text string) ([]plan.Job, error) {
	var all []plan.Job
	disabled, loaded := make(map[string]bool), make(map[string]bool)
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		kind, rest, _ := strings.Cut(line, " ")
		_, value, _ := strings.Cut(line, " = ")
		switch kind {
		case "job":
			all, loaded[rest] = append(all, plan.Job{Target: rest, Loaded: true}), true
		case "file":
			all = append(all, plan.Job{Target: rest})
		case "disabled":
			disabled[rest] = true
		case "path", "program":
			if len(all) == 0 {
				return nil, fmt.Errorf("unexpected line %q", line)
			}
			if j := &all[len(all)-1]; kind == "path" {
				j.Path = value
			} else {
				j.Program = value
			}
		default:
			return nil, fmt.Errorf("unexpected line %q", line)
		}
	}
	return plan.Controlling(slices.DeleteFunc(all, func(j plan.Job) bool {
		return !j.Loaded && (loaded[j.Target] || disabled[j.Target])
	})), nil
}

// parseArmed parses the remaining seconds and the step of an unconfirmed change. A passed deadline, or one in the far
// future after the clock was set back, counts as now.
func parseArmed(text string) *plan.Armed {
	seconds, step, _ := strings.Cut(text, " ")
	n, err := strconv.Atoi(seconds)
	if err != nil || n < 0 || n > int(longestUndo/time.Second) {
		n = 0
	}
	return &plan.Armed{Step: plan.StepID(step), Left: n}
}

// longestUndo exceeds every deadline of a confirmation.
const longestUndo = time.Hour

// parseRefusal parses a line of the record. A malformed line counts as one that matches no
// password.
func parseRefusal(text string) plan.Refusal {
	words := strings.Fields(text)
	if len(words) != 4 {
		return plan.Refusal{}
	}
	tries, terr := strconv.Atoi(words[2])
	at, aerr := strconv.ParseInt(words[3], 10, 64)
	if terr != nil || aerr != nil {
		return plan.Refusal{}
	}
	return plan.Refusal{Seal: words[0], Refused: words[1] == "refused", Tries: tries, At: time.Unix(at, 0).UTC()}
}

// parseUndone parses the host's note of an undone change, one key and value per line. ok is
// false if there is none, or none that names a step.
func parseUndone(text string) (u plan.Undone, ok bool) {
	for line := range strings.Lines(text) {
		key, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		switch key {
		case "step":
			u.Step = plan.StepID(value)
		case "when":
			if at, err := strconv.ParseInt(value, 10, 64); err == nil {
				u.At = time.Unix(at, 0).UTC()
			}
		case "why":
			u.Why = value
		case "exit":
			u.Exit, _ = strconv.Atoi(value) // a number that cannot be read is as good as none
		}
	}
	return u, u.Step != ""
}
